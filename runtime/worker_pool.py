"""Several processes of one command: started together, each started again when it dies, stopped together.

A worker process uses about one core, so a machine with more runs more of them on the same queue. The command gets
`--child N` at its end and a pipe as standard input: when that closes, the parent is gone, and the child stops as if
told to. Children have sessions of their own, so that Ctrl-C reaches the parent alone, and each of them once. A child
that cannot start for the first time (exit code 2 or 3) ends the others as well: it has said why itself.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

WAITS = 1.0, 30.0
"""Seconds before a child that died is started again; doubled up to the second figure while it keeps dying at once."""
STEADY_SECONDS = 60.0
"""Who ran for so long did not die of how it was started."""
CANNOT_START = (2, 3)


class Processes:
    """`count` processes of a command, kept running."""

    def __init__(self, command: Sequence[str], count: int, say: Callable[[str], None]) -> None:
        self._command, self._count, self._say = list(command), count, say
        self._running: dict[int, asyncio.subprocess.Process] = {}
        self._stopping = asyncio.Event()
        self._cannot_start = 0

    async def run(self) -> int:
        """Keep them running until SIGTERM or SIGINT; returns the worst exit code of those that were told to stop."""
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self.stop)
        codes = await asyncio.gather(*(self._keep(number) for number in range(1, self._count + 1)))
        return self._cannot_start or max(codes)

    def stop(self) -> None:
        """Tell all of them to stop; who is told twice ends at once."""
        self._stopping.set()
        for process in self._running.values():
            with suppress(ProcessLookupError):
                process.terminate()

    async def _keep(self, number: int) -> int:
        code, wait, first = 0, WAITS[0], True
        while not self._stopping.is_set():
            began = time.monotonic()
            code = await self._run(number)
            if first and code in CANNOT_START:
                self._cannot_start = code
                self.stop()
            if self._stopping.is_set():
                break
            first, wait = False, WAITS[0] if time.monotonic() - began > STEADY_SECONDS else wait
            self._say(f"Worker {number} ended ({_how(code)}); another one starts in {wait:g} s.")
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), wait)
            wait = min(2 * wait, WAITS[1])
        return abs(code)

    async def _run(self, number: int) -> int:
        process = await asyncio.create_subprocess_exec(
            *self._command, "--child", str(number), stdin=asyncio.subprocess.PIPE, start_new_session=True
        )
        self._running[number] = process
        if self._stopping.is_set():
            process.terminate()
        code = await process.wait()
        del self._running[number]
        return code


def _how(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}"
