"""Heartbeats of activities that say nothing of their progress, so that the death of their worker is noticed soon."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from temporalio import activity

BEAT = 3.0
"""Seconds between heartbeats, where nobody has to be told of a cancellation soon."""


@asynccontextmanager
async def beating(seconds: float = BEAT) -> AsyncIterator[None]:
    """Heartbeat until the block ends, every so many seconds; not at once, as the server knows that it began."""
    task = asyncio.create_task(_beat(seconds))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _beat(seconds: float) -> None:
    while True:
        await asyncio.sleep(seconds)
        activity.heartbeat()
