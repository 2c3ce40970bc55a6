"""Heartbeats of activities that say nothing of their progress, so that the death of their worker is noticed soon."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from temporalio import activity

BEAT = 3.0
"""Seconds between heartbeats."""


@asynccontextmanager
async def beating() -> AsyncIterator[None]:
    """Heartbeat until the block ends."""
    task = asyncio.create_task(_beat())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _beat() -> None:
    while True:
        activity.heartbeat()
        await asyncio.sleep(BEAT)
