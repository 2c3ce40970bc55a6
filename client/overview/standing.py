"""How the open plans of a list stand: asks those that a worker serves for their summary, all at once, for a short time.

A plan that does not answer in time is shown with what the server's index knows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

from pydantic import Field
from temporalio.client import Client
from temporalio.service import RPCError

from plansurvive.client.feature import views_of_features
from plansurvive.client.listing import Listed
from plansurvive.client.rpc import ask_view
from plansurvive.plans.errors import PlanError
from plansurvive.plans.model import Value
from plansurvive.plans.run import PlanStatus
from plansurvive.plans.views.next_actions import NextAction, next_actions
from plansurvive.plans.views.summary import AskedStep, Summary
from plansurvive.runtime.task_queues import listeners

PATIENCE = 2.0
"""Seconds a plan may take to answer."""
AT_ONCE = 16


class Standing(Value):
    """How one plan stands."""

    done: int | None = None
    """Steps that are completed or skipped; None if that is not known."""
    total: int | None = None
    asks: list[AskedStep] = Field(default_factory=list)
    """What it awaits of people, then events, each oldest first; less what the index does not tell of a plan that did
    not answer."""
    is_served: bool = True
    """Whether a worker polls its task queue."""
    held_up: str = ""
    """What keeps its steps from starting, such as `waits for its workspace`."""
    phase: str = ""
    """`rollback` or `finally` while the plan is being closed."""
    next: list[NextAction] = Field(default_factory=list)
    deadline: datetime | None = None
    """When it must have ended; None also if it did not answer."""

    @property
    def since(self) -> datetime | None:
        """Since when it awaits the oldest of what it asks."""
        return min((each.since for each in self.asks if each.since), default=None)


async def standings(client: Client, plans: Sequence[Listed]) -> dict[str, Standing]:
    """By plan id, how these plans stand. Raises NotConnected."""
    queues = sorted({each.queue for each in plans if each.is_open})
    served = dict(zip(queues, await asyncio.gather(*(_is_served(client, queue) for queue in queues)), strict=True))
    free = asyncio.Semaphore(AT_ONCE)

    async def of(listed: Listed) -> Standing:
        async with free:
            return await _standing(client, listed, is_served=served.get(listed.queue, True))

    found = await asyncio.gather(*(of(each) for each in plans))
    return {each.plan_id: standing for each, standing in zip(plans, found, strict=True)}


async def _standing(client: Client, listed: Listed, *, is_served: bool) -> Standing:
    summary = None
    if listed.is_open and is_served:
        try:
            summary = await ask_view(client, listed.plan_id, Summary, "summary", patience=PATIENCE)
        except PlanError:
            summary = None
    if summary is None:
        known = Summary(plan_id=listed.plan_id, status=listed.status, awaiting=listed.waiting or [])
        asks = [AskedStep(plan_id=listed.plan_id, step_id=name, kind="approval") for name in known.awaiting]
        done = listed.steps if listed.status is PlanStatus.COMPLETED else listed.done
        actions = next_actions(known, unserved="" if is_served else listed.queue)
        return Standing(done=done, total=listed.steps, asks=asks, is_served=is_served, next=actions)
    done = sum(summary.counts.get(name, 0) for name in ("completed", "skipped"))
    total = summary.counts.get("total", listed.steps)
    never = datetime.max.replace(tzinfo=UTC)
    asks = sorted(summary.asks, key=lambda each: (each.kind == "event", each.since or never))
    return Standing(
        done=done,
        total=total,
        asks=asks,
        next=next_actions(summary, views=views_of_features()),
        deadline=summary.deadline,
        phase=summary.phase,
        held_up=summary.held_up,
    )


async def _is_served(client: Client, queue: str) -> bool:
    try:
        return bool(await listeners(client, queue))
    except RPCError:
        return True  # not known: the plans are asked
