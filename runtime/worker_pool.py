"""A pool of processes of one command: started together, restarted individually when they die, stopped together.

A worker process uses about one core, so a machine with more cores runs several on the same queue. The command gets
`--child N` appended and a pipe as standard input: when that closes, the parent is gone and the child shuts down
gracefully. Children run in their own sessions, so that Ctrl-C reaches the parent only, which signals each of them once.
A child whose first start fails (exit code 2 or 3) stops the others too; it has printed the reason itself.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

WAITS = 1.0, 30.0
"""Initial and maximum delay in seconds before a dead child is restarted; doubles while it dies early."""
STEADY_SECONDS = 60.0
"""A child that ran this long resets the delay."""
CANNOT_START = (2, 3)


class Processes:
    """Keeps `count` processes of a command running. `environ`: their variables; None: those of this process."""

    def __init__(
        self, command: Sequence[str], count: int, say: Callable[[str], None], environ: Mapping[str, str] | None = None
    ) -> None:
        self._command, self._count, self._say, self._environ = list(command), count, say, environ
        self._running: dict[int, asyncio.subprocess.Process] = {}
        self._stopping = asyncio.Event()
        self._cannot_start = 0

    async def run(self) -> int:
        """Keep them running until SIGTERM, SIGINT or `stop`; returns the highest exit code."""
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self.stop)
        codes = await asyncio.gather(*(self._keep(number) for number in range(1, self._count + 1)))
        return self._cannot_start or max(codes)

    def stop(self) -> None:
        """Send SIGTERM to all; a second call makes them exit at once."""
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
            *(*self._command, "--child", str(number)),
            env=self._environ,
            stdin=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        self._running[number] = process
        if self._stopping.is_set():
            process.terminate()
        code = await process.wait()
        del self._running[number]
        return code


def _how(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}"
