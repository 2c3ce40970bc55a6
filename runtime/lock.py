"""Exclusive locks between processes, and between the threads and tasks of one: flock on a small file.

The kernel frees a lock when its holder dies, so nothing has to be swept; the files stay, since removing one that others
wait for would give two of them the lock. Locks are not reentrant. A descriptor that a child inherits keeps the lock for
as long as the child lives.
"""

from __future__ import annotations

import errno
import fcntl
import math
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from runtime.until import until

PAUSES = 0.001, 0.02
"""Seconds between two tries in a thread: the first and, doubled each time, the longest."""


@contextmanager
def locked(file: Path, seconds: float, stopped: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Hold the lock; blocks this thread while others hold it.

    Raises TimeoutError after so many seconds, or as soon as `stopped` returns true.
    """
    with _opened(file) as descriptor:
        deadline, (pause, longest) = time.monotonic() + seconds, PAUSES
        while not try_lock(descriptor):
            if stopped() or time.monotonic() > deadline:
                raise TimeoutError(errno.EWOULDBLOCK, f"another process held its lock for {seconds:g} s")
            time.sleep(pause)
            pause = min(2 * pause, longest)
        yield


@asynccontextmanager
async def locked_async(file: Path, seconds: float = math.inf) -> AsyncIterator[None]:
    """Hold the lock; cancelling the task stops the wait for it. Raises TimeoutError after so many seconds."""
    with _opened(file) as descriptor:
        await until(lambda: try_lock(descriptor), seconds)
        yield


def try_lock(descriptor: int) -> bool:
    """Take the lock of an open file if no other descriptor has it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def _opened(file: Path) -> Iterator[int]:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
