"""A short wait for news of a plan: so that an agent need not ask again and again, and a client's time limit holds."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Annotated

from pydantic import Field

from plansurvive.apps.mcp.tools.views import awaited
from plansurvive.client import runs
from plansurvive.client.history_feed import changes
from plansurvive.client.requests.connected import Connected
from plansurvive.plans.run import ENDED, PlanStatus
from plansurvive.plans.views.models import BriefView

MAX_WAIT = 50.0
"""Seconds that one call waits at most: many clients give up on a call after a minute."""

Wait = Annotated[
    float,
    Field(ge=0, le=MAX_WAIT, description="Seconds to wait at most, until the plan has ended or awaits a person."),
]


async def news(here: Connected, plan: str, seconds: float, since: int | None = None) -> None:
    """Wait at most `seconds` until the plan has ended or awaits a person; with `since`, until it has a later event."""
    if seconds <= 0:
        return
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            async for _ in changes(here.client, plan):
                if _is_news(await runs.brief(here.client, plan), since):
                    return


def _is_news(view: BriefView, since: int | None) -> bool:
    if view.status in ENDED:
        return True
    return view.seq > since if since is not None else bool(awaited(view)) or view.status is PlanStatus.REVIEW
