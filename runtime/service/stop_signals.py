"""What stops a worker process: signals, and the end of the process that started it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys


def stop_on_signals() -> asyncio.Event:
    """An event set by the first SIGTERM or SIGINT. The second exits; child processes notice and exit as well."""
    stopped = asyncio.Event()

    def stop() -> None:
        if stopped.is_set():
            os._exit(130)
        stopped.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    return stopped


def stop_with_parent(stopped: asyncio.Event) -> None:
    """Set the event when standard input closes, which means that the parent process has ended."""
    loop, descriptor = asyncio.get_running_loop(), sys.stdin.fileno()

    def look() -> None:
        if not os.read(descriptor, 1):
            loop.remove_reader(descriptor)
            stopped.set()

    loop.add_reader(descriptor, look)
