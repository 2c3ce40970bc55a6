"""Serves an MCP server on standard input and output, and ends it in order: at the end of input, or by a signal.

The library reads input in a thread that nothing interrupts. So input comes to it through a socket pair that a signal
closes for writing, which it sees as the end of input. Output carries protocol only: whatever else is printed goes to
standard error, also by child processes. Plans do not depend on this process.

The library reads standard input in a thread that nothing interrupts; closing a socket pair for writing is an end of
input to it, so calls end in order. Rejected: exiting at once, which cuts off answers.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import stat
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from io import TextIOWrapper
from typing import Any

from mcp.server.mcpserver import MCPServer

LOG = logging.getLogger(__name__)
MAX_LINE = 64 * 1024 * 1024
"""Bytes of one message; after a longer one, input ends."""
INPUT, OUTPUT, ERRORS, PIECE = 0, 1, 2, 65_536
INTERRUPTED = 130


async def serve(server: MCPServer[Any]) -> bool:
    """Serve until input ends, or a signal arrives; True after a signal. At the second signal, the process ends."""
    stopped = asyncio.Event()
    pump = _Pump()
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # what is printed shows when it is printed

    def stop() -> None:
        if stopped.is_set():
            os._exit(INTERRUPTED)
        stopped.set()
        pump.end()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    _when_unread(pump.end)
    pump.start()
    try:
        await server.run_stdio_async()
    except* (BrokenPipeError, ConnectionResetError):  # the client has gone, and nobody reads what it was sent
        LOG.debug("the output is no longer read")
    finally:
        os.dup2(ERRORS, OUTPUT)  # what was printed and not flushed must not follow the protocol
    return stopped.is_set()


def _when_unread(end: Callable[[], None]) -> None:
    """Call `end` once nobody reads standard output any more; of a file or a terminal, that is never known."""
    out, loop = os.dup(OUTPUT), asyncio.get_running_loop()
    kind = os.fstat(out).st_mode
    if not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)):
        os.close(out)
        return

    def gone() -> None:
        loop.remove_reader(out)
        if stat.S_ISFIFO(kind) or not _has_input(out):
            end()

    loop.add_reader(out, gone)


def _has_input(descriptor: int) -> bool:
    """Whether a socket is readable because of data; else, its other end is closed."""
    with socket.socket(fileno=os.dup(descriptor)) as own:
        return bool(own.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))


class _Pump:
    """Passes standard input on, in a thread of its own, through a pipe that can be ended from here."""

    def __init__(self) -> None:
        self._from = os.dup(INPUT)
        self._to, reading = socket.socketpair()
        os.dup2(reading.fileno(), INPUT, inheritable=False)
        reading.close()

    def start(self) -> None:
        """Begin. The thread does not keep the process from ending."""
        threading.Thread(target=self._run, name="standard input", daemon=True).start()

    def end(self) -> None:
        """End the input, whatever is still to come."""
        with suppress(OSError):
            self._to.shutdown(socket.SHUT_WR)

    def _run(self) -> None:
        length = 0
        with suppress(OSError):
            while piece := os.read(self._from, PIECE):
                _, line_end, tail = piece.rpartition(b"\n")
                length = len(tail) if line_end else length + len(tail)
                if length > MAX_LINE:
                    LOG.error("a message is longer than %s bytes; the input ends here", f"{MAX_LINE:,}")
                    break
                self._to.sendall(piece)
        self.end()
