"""Garbage collector and allocator settings for a worker.

A plan of 10,000 steps is half a million objects. With default thresholds the garbage collector rescans them while they
are created, which takes three times as long as creating them and a large share of a workflow task's time limit. So
there are no automatic collections: one is run explicitly whenever memory has grown by GROWTH, or by REST while the
worker is idle. What a run of a workflow leaves behind is in cycles; its largest part, the states of its steps, is
freed without a collection (`workflows.completion`). glibc is limited to ARENAS malloc arenas, and gives buffers of
MAPPED bytes and more back when they are freed: a Run as JSON text, and the copies that Temporal's SDK makes of it. By
itself it would raise that limit with the first big one, and keep the space of all further ones (mallopt(3)).
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import sys
import time
from contextlib import suppress

GROWTH = 150_000
"""Allocated blocks (about 15 MB) that trigger a full collection."""
REST, IDLE = 20_000, 0.05
"""Growth that suffices while idle, and the share of a core below which a worker counts as idle between two checks."""
LOOK_SECONDS = 0.5
ARENAS = 2
MAPPED = 256 * 1024
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8


def share_arenas() -> None:
    """Call before threads start: glibc creates up to eight arenas per core, and each retains its peak."""
    _c("mallopt", _M_ARENA_MAX, ARENAS)
    _c("mallopt", _M_MMAP_THRESHOLD, MAPPED)


async def keep_small() -> None:
    """Collect on growth, for as long as the worker runs."""
    gc.collect()
    gc.freeze()  # modules loaded by now are never freed
    gc.disable()
    floor, used = sys.getallocatedblocks(), time.process_time()
    try:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            now = sys.getallocatedblocks()
            before, used = used, time.process_time()
            if now - floor > (REST if used - before < IDLE * LOOK_SECONDS else GROWTH):
                gc.collect()
                _c("malloc_trim", 0)
                floor = sys.getallocatedblocks()
    finally:
        gc.enable()


def _c(function: str, *arguments: int) -> None:
    """Call a C library function if it exists."""
    with suppress(OSError, AttributeError, TypeError):
        getattr(ctypes.CDLL(None), function)(*arguments)
