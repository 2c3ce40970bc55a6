"""A proxy in front of the Temporal UI: it passes on what the UI's own page asks for, and nothing else.

The UI believes every Host and every page, so any page open in a browser on this machine could read plans and start one
(DNS rebinding). Here a request must name this machine in Host, come from the page itself (Origin, Sec-Fetch-Site), and
is parsed whole (h11) and sent anew, one per connection, so that none travels inside another. Browsers cannot reach the
UI past the proxy: it listens on a port of BLOCKED_PORTS.

It is a process of its own, which ends with the server: `browser_guard.py --fd N --to HOST:PORT --ends-with FILE`. With
`--server PID` the server ends, too, when the directory of that file is gone: its data was there, and nobody finds it
any more. It imports nothing of ours, so that it starts at once and also runs alone in a container.
"""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import os
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from pathlib import Path

import h11

HEAD_BYTES = 65_536
HEAD_SECONDS = 30.0
CHUNK = 65_536
LOOK_SECONDS = 2.0
"""Seconds between two looks at the server's directory."""
STOP_SECONDS = 15.0
OWN_HOST = re.compile(rb"(127\.0\.0\.1|localhost)(:[0-9]{1,5})?", re.IGNORECASE)
METHODS = frozenset((b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE"))
"""No OPTIONS: only another origin asks before it sends, and it may send nothing."""
BLOCKED_PORTS = (1719, 1720, 1723, 3659, 4045, 5060, 5061, 6566, 6665, 6666, 6667, 6668, 6669, 6697, 10080)
"""Ports without privileges that every browser refuses to connect to: https://fetch.spec.whatwg.org/#port-blocking.
Without 4190 and 6679, which Chromium allows, and 2049 (NFS) and 6000 (X11), which this machine may need."""

_OF_ONE_CONNECTION = {b"connection", b"keep-alive", b"proxy-connection", b"te", b"trailer", b"upgrade", b"expect"}
_ADDED = ((b"Cross-Origin-Resource-Policy", b"same-origin"), (b"Referrer-Policy", b"same-origin"))
_Headers = Iterable[tuple[bytes, bytes]]


def refusal(method: bytes, target: bytes, headers: _Headers) -> str | None:
    """Why a request is not passed on; None if it comes from the UI's own page, or opens it. Names are lower case."""
    given: dict[bytes, list[bytes]] = {}
    for name, value in headers:
        given.setdefault(name.lower(), []).append(value)
    if any(len(given.get(name, [])) > 1 for name in (b"host", b"origin", b"sec-fetch-site")):
        return "a header occurs twice"
    host = given.get(b"host", [b""])[0]
    if not OWN_HOST.fullmatch(host):
        return "the address must be 127.0.0.1 or localhost"
    if method not in METHODS or not target.startswith(b"/"):
        return "this method or form of address is not used here"
    origin = given.get(b"origin", [None])[0]
    if origin is None and method not in (b"GET", b"HEAD"):
        return "a request that may change something must name its origin"
    if origin is not None and origin.lower() != b"http://" + host.lower():
        return "it comes from another page"
    if given.get(b"sec-fetch-site", [b"none"])[0] in (b"none", b"same-origin"):
        return None
    opens = [given.get(name, [b""])[0] for name in (b"sec-fetch-mode", b"sec-fetch-dest")] == [b"navigate", b"document"]
    return None if opens and method == b"GET" else "it comes from another page"


class Guard:
    """Serves the UI at one address to the browsers of this machine."""

    def __init__(self, to: tuple[str, int]) -> None:
        self._to = to

    async def serve(self, listening: socket.socket) -> None:
        """Accept connections until cancelled."""
        async with await asyncio.start_server(self._answer, sock=listening) as serving:
            await serving.serve_forever()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        browser = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES)
        try:
            async with asyncio.timeout(HEAD_SECONDS):
                request = await _event(browser, reader)
            if isinstance(request, h11.Request):
                why = refusal(request.method, request.target, request.headers)
                if why:
                    _say(browser, writer, 403, f"Refused: {why}. Open the link that `plan doctor` shows.")
                else:
                    await self._pass_on(request, browser, reader, writer)
            await writer.drain()
        except h11.RemoteProtocolError as error:
            if browser.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
                _say(browser, writer, 400, f"The request is not valid: {error}.")
        except (OSError, TimeoutError):  # either side went away
            pass
        finally:
            writer.close()

    async def _pass_on(
        self, request: h11.Request, browser: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            ui_reader, ui_writer = await asyncio.open_connection(*self._to)
        except OSError:
            _say(browser, writer, 502, "The Temporal UI does not answer. `plan doctor` says why.")
            return
        try:
            ui = h11.Connection(h11.CLIENT)
            headers = [*_kept(request.headers), (b"Connection", b"close")]
            ui_writer.write(_bytes(ui, h11.Request(method=request.method, target=request.target, headers=headers)))
            async for event in _until_end(browser, reader):
                ui_writer.write(_bytes(ui, event))
                await ui_writer.drain()
            async for event in _until_end(ui, ui_reader):
                if isinstance(event, h11.InformationalResponse):
                    continue
                writer.write(_bytes(browser, _closing(event) if isinstance(event, h11.Response) else event))
                await writer.drain()
        finally:
            ui_writer.close()


async def _event(connection: h11.Connection, reader: asyncio.StreamReader) -> h11.Event | type[h11.PAUSED]:
    """The next event of a connection."""
    while (event := connection.next_event()) is h11.NEED_DATA:
        connection.receive_data(await reader.read(CHUNK))
    return event  # type: ignore[return-value]  # NEED_DATA is left out


async def _until_end(connection: h11.Connection, reader: asyncio.StreamReader) -> AsyncIterator[h11.Event]:
    """The events of one message, the end included."""
    while True:
        event = await _event(connection, reader)
        if not isinstance(event, h11.InformationalResponse | h11.Response | h11.Data | h11.EndOfMessage):
            return
        yield event
        if isinstance(event, h11.EndOfMessage):
            return


def _bytes(connection: h11.Connection, event: h11.Event) -> bytes:
    return connection.send(event) or b""


def _kept(headers: _Headers) -> list[tuple[bytes, bytes]]:
    return [(name, value) for name, value in headers if name.lower() not in _OF_ONE_CONNECTION]


def _closing(response: h11.Response) -> h11.Response:
    headers = [*_kept(response.headers), *_ADDED, (b"Connection", b"close")]
    return h11.Response(status_code=response.status_code, headers=headers, reason=response.reason)


def _say(connection: h11.Connection, writer: asyncio.StreamWriter, status: int, text: str) -> None:
    body = f"{text}\n".encode()
    headers = [(b"Content-Type", b"text/plain; charset=utf-8"), (b"Content-Length", str(len(body)).encode())]
    head = h11.Response(status_code=status, headers=[*headers, (b"Connection", b"close"), *_ADDED])
    for event in (head, h11.Data(data=body), h11.EndOfMessage()):
        writer.write(_bytes(connection, event))


def _end_with(lock: str) -> None:
    """End this process as soon as the lock on the file is free: whoever holds it has ended."""
    descriptor = os.open(lock, os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    os._exit(0)


def _end_without(directory: Path, server: int) -> None:
    """End the server when its directory is gone, or another one in its place, at two looks; its lock is free then."""
    own, missing = _identity(directory), 0
    while missing < 2:
        time.sleep(LOOK_SECONDS)
        missing = 0 if _identity(directory) in (own, ()) else missing + 1
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.kill(server, number)
        time.sleep(STOP_SECONDS)


def _identity(directory: Path) -> tuple[int, ...] | None:
    """What tells a directory from another one of its name; None if it is gone, () if that cannot be known now."""
    # As in runtime.service.presence, which cannot be imported here.
    try:
        status = directory.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return ()
    return status.st_dev, status.st_ino


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


def main() -> None:
    """Serve until the server has ended, or for ever."""
    parser = argparse.ArgumentParser(description="Pass on what the Temporal UI's own page asks for, and nothing else.")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--fd", type=int, help="file descriptor of a listening socket")
    where.add_argument("--listen", type=_address, help="HOST:PORT to listen on")
    parser.add_argument("--to", type=_address, required=True, help="HOST:PORT of the Temporal UI")
    parser.add_argument("--ends-with", help="file whose lock the server holds while it runs")
    parser.add_argument(
        "--server", type=int, help="PID of the server, which ends when the directory of that file is gone"
    )
    given = parser.parse_args()
    listening = socket.socket(fileno=given.fd) if given.fd is not None else socket.create_server(given.listen)
    if given.ends_with:
        threading.Thread(target=_end_with, args=[given.ends_with], daemon=True).start()
        if given.server:
            watched = [Path(given.ends_with).parent, given.server]
            threading.Thread(target=_end_without, args=watched, daemon=True).start()
    try:
        asyncio.run(Guard(given.to).serve(listening))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
