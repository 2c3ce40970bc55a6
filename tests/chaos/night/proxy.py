"""A TCP proxy in a process of its own, whose routes can be slowed down, cut, or left half open. Standard library only.

    python -m tests.chaos.night.proxy 7301=7233 7302=9000 ...

Each route is LISTEN=TO, ports of this machine. Commands are lines of standard input: `7301 slow 200` (milliseconds per
chunk), `7301 cut` (connections are reset, new ones refused), `7301 hang` (connections stay open and nothing passes),
`7301 pass`. Prints `ready` once it listens, and ends when its input does.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress

HOST = "127.0.0.1"
CHUNK = 65_536


class Route:
    """One port that leads to another."""

    def __init__(self, to: int) -> None:
        self.to, self.delay, self.is_cut = to, 0.0, False
        self.open = asyncio.Event()
        self.open.set()
        self.writers = set[asyncio.StreamWriter]()

    def change(self, mode: str, milliseconds: str = "0") -> None:
        """Change what becomes of connections, the present ones included."""
        self.delay = int(milliseconds) / 1000 if mode == "slow" else 0.0
        self.is_cut = mode == "cut"
        if mode == "hang":
            self.open.clear()
        else:
            self.open.set()
        if self.is_cut:
            for writer in self.writers:
                writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Connect a client through, as far as the mode lets it."""
        self.writers.add(writer)
        try:
            if self.is_cut:
                return
            await self.open.wait()
            there, back = await asyncio.open_connection(HOST, self.to)
            self.writers.add(back)
            try:
                await asyncio.gather(self._pump(reader, back), self._pump(there, writer))
            finally:
                self.writers.discard(back)
                back.transport.abort()
        except OSError:
            return  # whoever is behind the proxy is down: so is its port
        finally:
            self.writers.discard(writer)
            writer.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(CHUNK):
            await self.open.wait()
            await asyncio.sleep(self.delay)
            writer.write(data)
            await writer.drain()
        with suppress(OSError, NotImplementedError):
            writer.write_eof()


async def main(routes: list[str]) -> None:
    """Serve until standard input ends."""
    by_port = {}
    for pair in routes:
        port, _, to = pair.partition("=")
        by_port[port] = route = Route(int(to))
        await asyncio.start_server(route.serve, HOST, int(port))
    print("ready", flush=True)
    lines = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := await lines.readline():
        port, *change = line.decode().split()
        by_port[port].change(*change)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
