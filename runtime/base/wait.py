"""Bounded waiting: polling for a condition (`until`) and for a file lock (`locked`, `locked_async`).

Locks are exclusive between processes, and between the threads and tasks of one: flock on a small file. The kernel frees
a lock when its holder dies, so nothing has to be cleaned up. Lock files are never removed: removing one that another
process waits for would let two of them hold the lock. Locks are not reentrant. A descriptor that a child inherits holds
the lock for as long as the child lives.

Rejected: `filelock`, which does not expose its descriptor; the embedded server must inherit the one that locks its
data.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import inspect
import math
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeVar, overload

T = TypeVar("T")
PAUSES = 0.001, 0.02
"""Seconds between two attempts to lock in a thread: the first pause and the longest; each is twice the one before."""


@overload
async def until(condition: Callable[[], Awaitable[T]], seconds: float = ..., every: float = ...) -> T: ...


@overload
async def until(condition: Callable[[], T], seconds: float = ..., every: float = ...) -> T: ...


async def until(condition: Callable[[], Any], seconds: float = math.inf, every: float = 0.05) -> Any:
    """Poll `condition` (async or not) every `every` seconds and return its first true value.

    Raises TimeoutError when it is still false after `seconds`, and whatever `condition` raises. It is evaluated at
    least once, and once more at the deadline. An evaluation in progress is not interrupted: put `asyncio.timeout`
    around one that may hang.
    """
    deadline = time.monotonic() + seconds
    while True:
        is_last = time.monotonic() >= deadline
        value = condition()
        result = await value if inspect.isawaitable(value) else value
        if result:
            return result
        if is_last:
            raise TimeoutError(f"the condition was still false after {seconds:g} seconds")
        await asyncio.sleep(every)


@contextmanager
def locked(
    file: Path, seconds: float, stopped: Callable[[], bool] = lambda: False, *, shared: bool = False
) -> Iterator[int]:
    """Hold the lock; blocks this thread while another holds it. `shared`: with others who hold it shared.

    Yields its descriptor: a child process that inherits it holds the lock, too. Raises TimeoutError after `seconds`, or
    as soon as `stopped` returns true.
    """
    with _opened(file) as descriptor:
        deadline, (pause, longest) = time.monotonic() + seconds, PAUSES
        while not try_lock(descriptor, shared=shared):
            if stopped() or time.monotonic() > deadline:
                raise TimeoutError(errno.EWOULDBLOCK, f"another process held its lock for {seconds:g} s")
            time.sleep(pause)
            pause = min(2 * pause, longest)
        yield descriptor


@asynccontextmanager
async def locked_async(file: Path, seconds: float = math.inf) -> AsyncIterator[None]:
    """Hold the lock; cancelling the task ends the wait for it. Raises TimeoutError after `seconds`."""
    with _opened(file) as descriptor:
        await until(lambda: try_lock(descriptor), seconds)
        yield


def try_lock(descriptor: int, *, shared: bool = False) -> bool:
    """Lock an open file unless another descriptor holds its lock; returns whether it is locked now."""
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
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
