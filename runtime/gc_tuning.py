"""The memory of a worker: looked through when it has grown, and given back to the system.

A plan of 10,000 steps is half a million objects. Python's collector, as it comes, looks through them again and again
while they are made, which takes thrice the time of making them and takes much of the time that Temporal allows
for a workflow task. A run that has ended is freed by a collection only. So: hardly any by themselves, and one whenever
memory has grown by so much, or by less and there is nothing to do. The C library is told to share its arenas among
threads, where it listens.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import sys
from contextlib import suppress

COLLECT_AFTER = 100_000, 20, 100
"""Objects made, and younger collections, between two collections of each age; the interpreter's are 700, 10, 10."""
GROWTH = 300_000
"""Blocks of memory, about 30 MB, after which everything is looked through."""
REST, STILL = 20_000, 500
"""In a pause, with fewer blocks made or freed than the second between two looks, growth by the first is enough."""
LOOK_SECONDS = 0.5
ARENAS = 2
_M_ARENA_MAX = -8


def share_arenas() -> None:
    """Call it before there are threads: glibc gives them eight arenas per core, and each keeps its peak."""
    _c("mallopt", _M_ARENA_MAX, ARENAS)


async def keep_small() -> None:
    """Collect after so much growth, for as long as the worker runs."""
    gc.collect()
    gc.freeze()  # what is loaded by now stays for good
    gc.set_threshold(*COLLECT_AFTER)
    floor = before = sys.getallocatedblocks()
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        now = sys.getallocatedblocks()
        if now - floor > (REST if abs(now - before) < STILL else GROWTH):
            gc.collect()
            _c("malloc_trim", 0)
            floor = now = sys.getallocatedblocks()
        before = now


def _c(function: str, *arguments: int) -> None:
    """Call the C library, if it is one that knows the function."""
    with suppress(OSError, AttributeError, TypeError):
        getattr(ctypes.CDLL(None), function)(*arguments)
