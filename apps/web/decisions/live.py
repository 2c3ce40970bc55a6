"""The live channel of the inbox: server-sent events with the keys of what waits. Adds nothing to any history."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress

from plansurvive.apps.web.decisions.inbox import Inbox, Waiting
from plansurvive.plans.in_views import Viewer

STILL_HERE = 15.0
"""Seconds between two signs of life."""


async def events(inbox: Inbox, viewer: Viewer | None = None) -> AsyncIterator[bytes]:
    """One event at once, and one for each change: `keys`, `gone` and what became of those, a `problem`, the `count`.

    `viewer`: of what this person may decide, alone.
    """
    follower = inbox.follow()
    following: asyncio.Task[Waiting] | None = None
    try:
        while True:
            following = following or asyncio.ensure_future(anext(follower))
            ready, _ = await asyncio.wait({following}, timeout=STILL_HERE)
            if not ready:
                yield b": still here\n\n"
                continue
            waiting, following = following.result(), None
            waiting = waiting if viewer is None else waiting.of(viewer)
            found = {"keys": waiting.keys, "gone": waiting.gone, "problem": waiting.problem, "count": waiting.count}
            yield f"event: waiting\ndata: {json.dumps(found)}\n\n".encode()
    finally:
        if following is not None:
            following.cancel()
            with suppress(asyncio.CancelledError):
                await following
        await follower.aclose()
