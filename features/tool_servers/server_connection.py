"""One connection to a tool server: opened when it is first needed, and gone when it ends in any way.

A task of its own holds it open, as its parts must be closed where they were opened; calls come from any task. What the
server asks of us is declined, but for the workspace it was granted: no model and no person answers to it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from plansurvive.plans.errors import ToolError

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client import Client, ClientRequestContext
    from mcp.shared.message import SessionMessage
    from mcp_types import ListRootsResult

    from plansurvive.features.tool_servers.sieve import Sieve

    Streams = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]

ANSWER_SECONDS = 5.0
"""Seconds in which a server that is alive answers to `ping`."""
END_SECONDS = 15.0


class Wire(Protocol):
    """How messages get to a server and back."""

    @property
    def problem(self) -> ToolError | None:
        """Why the server was disconnected; None if we did not do it."""

    @property
    def ended(self) -> asyncio.Event:
        """Set when nothing more will come from it."""

    @property
    def sieve(self) -> Sieve:
        """What mends its lists of tools."""

    def streams(self) -> AbstractAsyncContextManager[Streams]:
        """The streams of a session."""

    def last_words(self) -> str:
        """What it said last that is no message, for an error; may be empty."""


class Connection:
    """A connection that is open, opening, or over."""

    def __init__(self, open_wire: Callable[[], Awaitable[Wire]], root: str, seconds: float) -> None:
        """`root`: the workspace the server is told of; empty: none."""
        self.over = asyncio.Event()
        self.calls = 0
        """Those that use it now; it is not closed as idle meanwhile."""
        self.used = asyncio.get_running_loop().time()
        self._open_wire, self._root, self._seconds = open_wire, root, seconds
        self._wire: Wire | None = None
        self._closing = asyncio.Event()
        self._client: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._hold())

    async def client(self) -> Client:
        """The client, when the server has answered. Raises what opening it raised."""
        return await asyncio.shield(self._client)

    @property
    def is_ending(self) -> bool:
        """Whether no further call can be made."""
        return self._closing.is_set() or self.over.is_set() or bool(self._wire and self._wire.ended.is_set())

    @property
    def problem(self) -> ToolError | None:
        """Why the server was disconnected by us."""
        return self._wire.problem if self._wire else None

    def last_words(self) -> str:
        """See `Wire`."""
        return self._wire.last_words() if self._wire else ""

    def roots(self) -> ListRootsResult:
        """What the server is told of the workspace: where it is, if it was granted."""
        from mcp_types import ListRootsResult, Root

        place = Path(self._root)
        return ListRootsResult(roots=[Root(uri=place.as_uri(), name=place.name)] if self._root else [])

    def release(self) -> None:
        """One of `calls` is over."""
        self.calls -= 1
        self.used = asyncio.get_running_loop().time()

    async def close(self) -> None:
        """End it; its processes are dead afterwards."""
        self._closing.set()
        if not self._client.done():
            self._task.cancel()
        await asyncio.wait([self._task], timeout=END_SECONDS)
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task], timeout=END_SECONDS)

    async def close_unless_alive(self, seconds: float) -> None:
        """End a connection whose server does not answer any more."""
        try:
            async with asyncio.timeout(seconds):
                await _ask(await self.client())
        except Exception:  # whatever it is, the server cannot be relied upon
            await self.close()

    async def _hold(self) -> None:
        try:
            async with asyncio.timeout(self._seconds) as limit:
                self._wire = await self._open_wire()
                async with self._opened(self._wire) as client:
                    limit.reschedule(None)
                    self._wire.sieve.version = client.protocol_version
                    self._client.set_result(client)
                    await _first_of(self._closing, self._wire.ended)
        except TimeoutError:
            self._failed(TimeoutError(f"it did not answer within {self._seconds:g} seconds (startTimeout)"))
        except asyncio.CancelledError:
            self._failed(ConnectionError("the worker is stopping"))
        except BaseExceptionGroup as group:
            self._failed(_first(group))
        except Exception as error:
            self._failed(error)
        finally:
            self.over.set()

    @asynccontextmanager
    async def _opened(self, wire: Wire) -> AsyncIterator[Client]:
        from mcp.client import Client
        from mcp_types import Implementation

        logging.getLogger("mcp").setLevel(logging.CRITICAL)  # it logs what servers say, with tracebacks; errors tell
        ours = Implementation(name="plans-that-survive", version="1")

        async def tell_roots(context: ClientRequestContext) -> ListRootsResult:  # noqa: ARG001 - the library names it
            return self.roots()

        roots = tell_roots if self._root else None
        async with Client(wire.streams(), client_info=ours, list_roots_callback=roots, cache=None) as client:
            yield client

    def _failed(self, error: BaseException) -> None:
        if not self._client.done():
            self._client.set_exception(self.problem or error)
            with suppress(Exception):
                self._client.exception()  # retrieve it, or asyncio logs it as never retrieved


async def _first_of(*events: asyncio.Event) -> None:
    """Wait until one of the events is set."""
    waiting = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waiting:
            each.cancel()


async def _ask(client: Client) -> None:
    """Have the server answer anything. Raises MCPError if it cannot."""
    from mcp import MCPError
    from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT

    try:
        if client.session.discover_result is not None:
            await client.session.send_discover(client.protocol_version)
        else:
            await client.session.send_ping()
    except MCPError as error:
        if error.code in (CONNECTION_CLOSED, REQUEST_TIMEOUT):
            raise


def _first(group: BaseExceptionGroup) -> BaseException:
    """What went wrong first, in a group of a task's parts."""
    first: BaseException = group
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    return first
