"""How the CPU time of a piece of work grows with its size, instead of absolute times."""

from __future__ import annotations

import time
from collections.abc import Callable


def cpu(work: Callable[[], object]) -> float:
    """CPU seconds of this thread; the best of two, since the first one pays for caches."""
    best = float("inf")
    for _ in range(2):
        before = time.thread_time()
        work()
        best = min(best, time.thread_time() - before)
    return best


def growth(work: Callable[[int], Callable[[], object]], size: int) -> float:
    """How much longer work of four times the size takes: 4 if it is linear, 16 if it is quadratic.

    A twentieth of a second is given free: below that the measurement is noise.
    """
    return max(cpu(work(4 * size)) - 0.05, 0.0) / cpu(work(size))
