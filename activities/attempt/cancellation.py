"""A cancellation is delivered to a call once.

The SDK cancels an activity as often as the server refuses one of its heartbeats, and again when the worker stops. The
first cancellation makes a call end its processes and record what it has changed; the next one would interrupt just
that, and the next attempt would begin beside processes that are still alive.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def cancelled_once(work: Coroutine[Any, Any, T]) -> T:
    """What the work returns or raises; of several cancellations it is given the first."""
    task, is_cancelled = asyncio.ensure_future(work), False
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            if not is_cancelled:
                task.cancel()
            is_cancelled = True
    return task.result()
