"""One writer at a time per file, whatever step, plan or worker process of this state directory it comes from.

Locks are those of the kernel (flock) on a fixed set of small files: the death of a process lets go of its locks, and
nothing has to be swept. Two files that share a lock wait for each other, no more; a call holds one at a time, so there
is no deadlock.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import xxhash

from activities.workspace.paths import shown
from plans.errors import ToolError

LOCK_SECONDS = 30.0
_STRIPES = 1_024


@contextmanager
def locked(directory: Path, workspace: str, path: str, stopped: Callable[[], bool]) -> Iterator[None]:
    """Hold the lock of a file. Raises ToolError FILE_BUSY, worth another attempt, when others hold it for too long."""
    stripe = xxhash.xxh3_64_intdigest(f"{workspace}\0{path}".encode()) % _STRIPES
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(directory / f"{stripe:03x}", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        _wait(descriptor, path, stopped)
        yield
    finally:
        os.close(descriptor)


def _wait(descriptor: int, path: str, stopped: Callable[[], bool]) -> None:
    deadline, pause = time.monotonic() + LOCK_SECONDS, 0.001
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if stopped() or time.monotonic() > deadline:
                raise ToolError(
                    "FILE_BUSY", f"another step is still changing {shown(path)}; try again later", retryable=True
                ) from None
        time.sleep(pause)
        pause = min(pause * 2, 0.02)
