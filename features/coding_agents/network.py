"""The way out of a coding agent that may reach single hosts: a CONNECT proxy of ours, in the worker.

The agent's sandbox has a network of its own without any way out (level 2). Before the agent begins, a few lines of ours
listen there and hand the listening socket to the worker, which accepts on it; the agent is given HTTPS_PROXY. Nothing
of the proxy is within the agent's reach. `network` of agents.toml decides by the host's name; which addresses the name
may lead to, http_request's rules decide: none of this machine, a private network or a cloud's metadata, unless
PLANS_HTTP_ALLOW opens it. The proxy resolves the name once, and sees no content.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from plansurvive.activities.network.address_policy import AddressPolicy, AddressRefused
from plansurvive.activities.network.pinned_connections import NEXT_ADDRESS, resolve
from plansurvive.plans.model.receivers import receives

PORT = 3128
"""Of the proxy in the agent's sandbox, where nothing else listens."""
CONNECTIONS = 128
"""At most so many at a time: each takes two of the worker's file descriptors."""
HEAD_BYTES, HEAD_SECONDS = 16_384, 30.0
PIECE_BYTES = 65_536
REFUSALS = 50
"""Different hosts of which the record says that they were refused."""
_BEGIN = """
import os, signal, socket, sys
door = socket.socket()
door.bind(("127.0.0.1", int(sys.argv[2])))
door.listen(64)
with socket.socket(socket.AF_UNIX) as way:
    way.connect(sys.argv[1])
    socket.send_fds(way, [b"."], [door.fileno()])
for number in (signal.SIGPIPE, signal.SIGXFSZ):
    signal.signal(number, signal.SIG_DFL)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""What becomes the agent once the worker has the socket. Python ignores the two signals, and the agent must not."""


@dataclass
class Proxy:
    """The proxy of one process of an agent. `refused` is called with a sentence, once per host."""

    hosts: Sequence[str]
    addresses: AddressPolicy
    refused: Callable[[str], None]
    place: str = field(default_factory=lambda: f".network-{secrets.token_hex(8)}")
    """Name of the socket in /tmp of the sandbox, as long as the agent begins."""
    _open: set[asyncio.Task[None]] = field(default_factory=set, init=False)
    _known: set[str] = field(default_factory=set, init=False)

    @property
    def variables(self) -> Mapping[str, str]:
        """What tells programs of the proxy; Node obeys only if it is asked to."""
        address = f"http://127.0.0.1:{PORT}"
        return {"HTTPS_PROXY": address, "https_proxy": address, "NODE_USE_ENV_PROXY": "1"}

    def wrapped(self, command: Sequence[str]) -> list[str]:
        """The command, begun with the proxy."""
        return [sys.executable, "-I", "-S", "-c", _BEGIN, f"/tmp/{self.place}", str(PORT), *command]  # noqa: S108

    @asynccontextmanager
    async def serving(self, temporary: str) -> AsyncIterator[None]:
        """Serve what begins in this block. `temporary`: the directory that is /tmp there."""
        path = Path(temporary, self.place)
        waiting = _listening(path)
        work = asyncio.create_task(self._serve(waiting))
        try:
            yield
        finally:
            work.cancel()
            for each in self._open:
                each.cancel()
            await asyncio.gather(work, *self._open, return_exceptions=True)
            waiting.close()
            path.unlink(missing_ok=True)

    async def _serve(self, waiting: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        with (await loop.sock_accept(waiting))[0] as way:
            way.setblocking(False)
            door = await _received(way)
        with door:
            door.setblocking(False)
            while True:
                connection, _ = await loop.sock_accept(door)
                if len(self._open) >= CONNECTIONS:
                    connection.close()
                    continue
                task = asyncio.create_task(self._answer(connection))
                self._open.add(task)
                task.add_done_callback(self._open.discard)

    async def _answer(self, connection: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=connection, limit=HEAD_BYTES)
        try:
            with suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                async with asyncio.timeout(HEAD_SECONDS):
                    head = await reader.readuntil(b"\r\n\r\n")
                await self._connect(head.split(b"\r\n", 1)[0], reader, writer)
        finally:
            writer.close()

    async def _connect(self, line: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        method, _, rest = line.decode("latin-1").partition(" ")
        host, colon, port = rest.rpartition(" ")[0].rpartition(":")
        is_port = port.isascii() and port.isdigit() and 0 < int(port) < 65_536
        if method != "CONNECT" or not colon or not is_port:
            return await _say(writer, "405 Method Not Allowed", "this proxy takes CONNECT alone: use https")
        if not receives(f"https://{host}:{port}/", self.hosts):
            return await self._refuse(writer, f"{host}:{port}", "it is not in `network` of agents.toml")
        try:
            found = await resolve(host.strip("[]"), int(port))
            chosen = await asyncio.to_thread(self.addresses.choose, host.strip("[]"), int(port), found)
            inner_reader, inner_writer = await _reached(chosen, int(port))
        except AddressRefused as error:
            return await self._refuse(writer, f"{host}:{port}", error.why)
        except (OSError, UnicodeError, TimeoutError) as error:
            return await _say(writer, "502 Bad Gateway", f"{host}:{port} cannot be reached: {error}")
        try:
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await asyncio.gather(_passed(reader, inner_writer), _passed(inner_reader, writer))
        finally:
            inner_writer.close()

    async def _refuse(self, writer: asyncio.StreamWriter, host: str, why: str) -> None:
        if host not in self._known and len(self._known) < REFUSALS:
            self._known.add(host)
            self.refused(f"no connection to {host[:300]}: {why}")
        await _say(writer, "403 Forbidden", f"no connection to {host[:300]}: {why}")


def _listening(path: Path) -> socket.socket:
    """A Unix socket of this name, which may be longer than the name of a socket: it is bound by its directory."""
    waiting = socket.socket(socket.AF_UNIX)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        waiting.bind(f"/proc/self/fd/{folder}/{path.name}")
        waiting.listen(1)
        waiting.setblocking(False)
    except BaseException:
        waiting.close()
        raise
    finally:
        os.close(folder)
    return waiting


async def _received(way: socket.socket) -> socket.socket:
    """The listening socket that arrives."""
    loop, arrived = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(way, arrived.set)
    try:
        await arrived.wait()
        _, found, _, _ = socket.recv_fds(way, 1, 1, socket.MSG_CMSG_CLOEXEC)
    finally:
        loop.remove_reader(way)
    if not found:
        raise OSError("the agent's program did not begin")
    return socket.socket(fileno=found[0])


async def _reached(addresses: Sequence[str], port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to the first of the addresses that answers. Raises OSError, TimeoutError."""
    failure: Exception = OSError("it has no address")
    for address in addresses:
        try:
            async with asyncio.timeout(NEXT_ADDRESS if address != addresses[-1] else HEAD_SECONDS):
                return await asyncio.open_connection(address, port)
        except (OSError, TimeoutError) as error:
            failure = error
    raise failure


async def _passed(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    """Pass on what one end says until it has said everything; the other end may still answer."""
    try:
        while data := await source.read(PIECE_BYTES):
            target.write(data)
            await target.drain()
        target.write_eof()
    except OSError:
        target.transport.abort()  # what the other direction waits for ends by that, too


async def _say(writer: asyncio.StreamWriter, status: str, text: str) -> None:
    body = f"{text}\n".encode("utf-8", "replace")
    writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
    await writer.drain()
