"""What people are asked for, in all plans and agents that run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from temporalio.client import Client

from client.errors import NoWorker
from client.listing import Listed, list_plans
from client.rpc import STUCK, ask_view
from plans.errors import PlanError
from plans.model import Value
from plans.views.models import BriefView
from plans.views.queries import BRIEF
from runtime.task_queues import listeners

PATIENCE = 10.0
"""Seconds a plan may take to answer."""
AT_ONCE = 16
"""Plans asked at the same time."""
NAMED = 5
"""Plans named of those that could not be asked."""
UNSPOKEN = (NoWorker.code, STUCK, "PLAN_NOT_FOUND", "QUERY_FAILED")
"""What keeps one plan from being asked, while the others can be."""


class Pending(Value):
    """A decision somebody is asked for."""

    plan_id: str
    title: str = ""
    step_id: str
    kind: str
    tool: str
    description: str = ""
    args: dict[str, Any]
    since: datetime | None = None
    deadline: datetime | None = None
    version: int


async def pending(
    client: Client, say: Callable[[str], None] = lambda _: None, *, patience: float = PATIENCE
) -> AsyncIterator[Pending]:
    """What people are asked for. Plans that do not answer are left out, which `say` is told at the end, with why.

    `patience`: the seconds a plan may take to answer.
    """
    silent: dict[str, bool] = {}
    """Whether nobody answers for the plans of a queue."""
    unserved: list[str] = []
    failed: list[PlanError] = []
    asking = [listed async for listed in list_plans(client, running=True, agents=True) if listed.waiting != []]
    for start in range(0, len(asking), AT_ONCE):
        some = asking[start : start + AT_ONCE]
        for queue in {listed.queue for listed in some} - silent.keys():
            silent[queue] = not await listeners(client, queue)
        asked = [listed for listed in some if not silent[listed.queue]]
        given = await asyncio.gather(*(_of(client, listed, patience) for listed in asked))
        answers = {listed.plan_id: answer for listed, answer in zip(asked, given, strict=True)}
        silent |= _gone(asked, answers)
        for listed in some:
            answer = answers.get(listed.plan_id)
            if isinstance(answer, list):
                for item in answer:
                    yield item
            elif silent[listed.queue] or answer is None:
                unserved.append(listed.plan_id)
            elif answer.code != "PLAN_NOT_FOUND":
                failed.append(answer)
    if unserved:
        say(f"Not asked, as no worker answers for them: {_named(unserved)}. Start one: plan worker")
    for error in failed[:NAMED]:
        say(error.message)
    if len(failed) > NAMED:
        say(f"... and {len(failed) - NAMED} more plans that do not answer")


async def _of(client: Client, listed: Listed, patience: float) -> list[Pending] | PlanError:
    try:
        view = await ask_view(client, listed.plan_id, BriefView, "plan", BRIEF, patience=patience)
    except PlanError as error:
        if error.code not in UNSPOKEN:
            raise
        return error
    return [Pending(plan_id=listed.plan_id, title=view.title, **dict(item)) for item in view.pending]


def _gone(asked: Sequence[Listed], answers: Mapping[str, list[Pending] | PlanError]) -> dict[str, bool]:
    """The queues of which no plan at all was answered for: who listened has gone, and is not waited for every time."""
    queues = {listed.queue for listed in asked}
    answered = {listed.queue for listed in asked if not _is_unserved(answers[listed.plan_id])}
    return dict.fromkeys(queues - answered, True)


def _is_unserved(answer: list[Pending] | PlanError) -> bool:
    return isinstance(answer, NoWorker) and answer.code == NoWorker.code


def _named(plans: Sequence[str]) -> str:
    more = len(plans) - NAMED
    return ", ".join(plans[:NAMED]) + (f" and {more} more" if more > 0 else "")
