"""Messages to and from a program by its standard input and output, one JSON text a line.

The reader never holds more than one message of limited length. What is no message at all, as programs print at their
start, goes to the log up to a limit; what begins like a message and is none ends the connection, as somebody waits for
it. Standard error goes to the log.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from plansurvive.activities.sandbox.process import Running
from plansurvive.features.tool_servers.flow import Flow, flooded
from plansurvive.features.tool_servers.log import ServerLog
from plansurvive.features.tool_servers.sieve import Sieve
from plansurvive.plans.errors import ToolError

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    from plansurvive.features.tool_servers.server_connection import Streams

READ_BYTES = 262_144
MAX_NOISE = 200
"""Lines that are no messages."""
PATIENCE = 2.0
"""Seconds that a program has to end itself when its input ends."""


class Pipes:
    """The messages of one program. A `Wire`."""

    def __init__(self, server: str, running: Running, log: ServerLog, most: int) -> None:
        self.problem: ToolError | None = None
        self.ended = asyncio.Event()
        self.sieve = Sieve()
        self._server, self._running, self._log, self._most = server, running, log, most
        self._flow, self._noise = Flow(server), 0

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[Streams]:
        """The streams of a session. The program and all its processes are dead afterwards."""
        arrived, reading = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        writing, leaving = anyio.create_memory_object_stream[SessionMessage](0)
        async with anyio.create_task_group() as group:
            group.start_soon(self._read, arrived)
            group.start_soon(self._write, leaving)
            group.start_soon(self._read_errors)
            patience = 0.0
            try:
                yield reading, writing
                patience = 0.0 if self.problem else PATIENCE
            finally:
                reading.close()  # first, so that the reader drops what still comes: it may be stuck with a message
                with anyio.CancelScope(shield=True):
                    await self._running.end(patience)
                group.cancel_scope.cancel()
                for stream in (arrived, reading, writing, leaving):
                    stream.close()

    async def _read(self, arrived: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        try:
            async for line in _lines(self._running.stdout, self._most, self._too_long):
                message = self._message(line)
                if message is not None:
                    await arrived.send(self.sieve.passed(message))
        except ToolError as error:
            self.problem = error
            self._running.kill()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            pass  # the session has ended
        finally:
            arrived.close()
            self.ended.set()
        with suppress(OSError):  # its end is noticed only when all it wrote was read
            while await self._running.stdout.read(READ_BYTES):
                pass

    def last_words(self) -> str:
        """The last lines of its standard error."""
        return self._log.last_lines()

    def _message(self, line: bytes) -> SessionMessage | None:
        text = line.strip()
        if not text:
            return None
        self._flow.add()
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))
        except ValueError:
            if text.startswith((b"{", b"[")):
                raise _garbled(self._server, "a message that is not valid JSON-RPC") from None
        self._noise += 1
        if self._noise > MAX_NOISE:
            raise _garbled(self._server, f"more than {MAX_NOISE} lines that are no messages")
        self._log.add(b"(stdout) " + text[:2_000] + b"\n")
        return None

    def _too_long(self) -> ToolError:
        return flooded(self._server, f"a message of more than {self._most:,} bytes (maxResult in mcp.toml)")

    async def _write(self, leaving: MemoryObjectReceiveStream[SessionMessage]) -> None:
        async for each in leaving:
            text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
            try:
                self._running.stdin.write(text.encode() + b"\n")
                await self._running.stdin.drain()
            except (OSError, RuntimeError):  # it has ended: the reader says so
                self._running.kill()
                return

    async def _read_errors(self) -> None:
        with suppress(OSError):
            while data := await self._running.stderr.read(READ_BYTES):
                self._log.add(data)


async def _lines(stream: asyncio.StreamReader, most: int, too_long: Callable[[], ToolError]) -> AsyncIterator[bytes]:
    """The lines of a stream. Raises what `too_long` returns for a longer one."""
    begun = bytearray()
    while data := await stream.read(READ_BYTES):
        first, *more = data.split(b"\n")
        begun += first
        for line in (begun, *more):
            if len(line) > most:
                raise too_long()
        if more:
            yield bytes(begun)
            for line in more[:-1]:
                yield line
            begun = bytearray(more[-1])
    if begun:
        yield bytes(begun)


def _garbled(server: str, what: str) -> ToolError:
    return ToolError(
        "MCP_PROTOCOL",
        f"the tool server '{server}' printed {what}, so it was disconnected; its standard output is for messages only",
    )
