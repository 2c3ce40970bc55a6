"""How the CPU time of a piece of work grows with its size, instead of absolute times.

Work cannot be counted instead: what is feared here is done in C, such as regular expressions that scan all that came
before, and processors that count instructions do so on few machines. CPU time varies with what else a machine does, so
small and large work take turns, the least of each counts, and an unclear answer is measured again.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

LINEAR, QUADRATIC = 4, 16
"""How much longer work of four times the size takes."""
CLEAR = 1.5
"""Up to this factor beside one of them, an answer is clear."""
MOST_ROUNDS = 10


def cpu(work: Callable[[], object]) -> float:
    """CPU seconds of this thread; the best of two, since the first one pays for caches."""
    return min(_once(work), _once(work))


def growth(work: Callable[[int], Callable[[], object]], size: int) -> float:
    """How much longer work of four times the size takes: 4 if it is linear, 16 if it is quadratic.

    Work of less than a millisecond is not measured: take a larger `size`.
    """
    small, large = work(size), work(4 * size)
    least = [float("inf"), float("inf")]
    for number in range(1, MOST_ROUNDS + 1):
        least = [min(least[0], _once(small)), min(least[1], _once(large))]
        found = least[1] / least[0]
        if number > 1 and (found < LINEAR * CLEAR or found > QUADRATIC / CLEAR):
            break
    assert least[0] > 0.001, f"too little work to be measured: {least[0]:.6f} s; take a larger size"
    return found


def _once(work: Callable[[], object]) -> float:
    gc.disable()  # when it runs depends on what ran before
    try:
        before = time.thread_time()
        work()
        return time.thread_time() - before
    finally:
        gc.enable()
