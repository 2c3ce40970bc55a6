"""The decisions that all running plans and agents await."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from pydantic import Field
from temporalio.client import Client

from client.errors import NoWorker
from client.listing import Listed, list_plans
from client.rpc import STUCK, ask_view
from plans.activity_io import LargeValue
from plans.errors import PlanError
from plans.model import Value
from plans.views.models import BriefView
from plans.views.queries import BRIEF
from runtime.task_queues import listeners

PATIENCE = 10.0
"""Default seconds a plan may take to answer."""
AT_ONCE = 16
"""Plans queried concurrently."""
NAMED = 5
"""Maximum plans named in a message about plans that did not answer."""
UNSPOKEN = (NoWorker.code, STUCK, "PLAN_NOT_FOUND", "QUERY_FAILED")
"""Error codes that concern one plan only; the others are still queried."""


class Pending(Value):
    """A step awaiting approval, with what is needed to decide on it."""

    plan_id: str
    title: str = ""
    """Title of the plan."""
    step_id: str
    kind: str
    tool: str
    description: str = ""
    args: dict[str, Any]
    """Arguments of the call, with references filled in."""
    queue: str | None = None
    """Task queue whose workers make the call; None: that of the plan's workflow."""
    workspace: str = ""
    """Directory it works in."""
    network: bool = False
    """Whether it asks for network access."""
    large: dict[str, LargeValue] = Field(default_factory=dict)
    """By step, values that the call inserts and that are stored outside history; `args` has their references."""
    digest: str = ""
    """Digest of all this. Pass it as `Choice.digest` to decide on exactly this call."""
    changed: bool = False
    """Whether the step asked for another call before, or an edit changed it; an approval must name `digest` then."""
    since: datetime | None = None
    """When the step began to await approval."""
    deadline: datetime | None = None
    """When the approval expires; None if it does not."""
    version: int
    """The plan's version."""


async def pending(
    client: Client, say: Callable[[str], None] = lambda _: None, *, patience: float = PATIENCE
) -> AsyncIterator[Pending]:
    """The steps awaiting approval in all running plans and agents.

    `patience`: seconds a plan may take to answer. Plans that do not answer are omitted; at the end, `say` is called
    with the reasons. Raises NotConnected.
    """
    is_silent: dict[str, bool] = {}
    """By task queue, whether it has no worker that answers."""
    unserved: list[str] = []
    failed: list[PlanError] = []
    candidates = [listed async for listed in list_plans(client, running=True, agents=True) if listed.waiting != []]
    for start in range(0, len(candidates), AT_ONCE):
        batch = candidates[start : start + AT_ONCE]
        for queue in {listed.queue for listed in batch} - is_silent.keys():
            is_silent[queue] = not await listeners(client, queue)
        asked = [listed for listed in batch if not is_silent[listed.queue]]
        results = await asyncio.gather(*(_of(client, listed, patience) for listed in asked))
        answers = {listed.plan_id: answer for listed, answer in zip(asked, results, strict=True)}
        is_silent |= _gone(asked, answers)
        for listed in batch:
            answer = answers.get(listed.plan_id)
            if isinstance(answer, list):
                for item in answer:
                    yield item
            elif is_silent[listed.queue] or answer is None:
                unserved.append(listed.plan_id)
            elif answer.code != "PLAN_NOT_FOUND":
                failed.append(answer)
    if unserved:
        say(f"No worker answers for these plans: {_named(unserved)}. Start one: plan worker")
    for error in failed[:NAMED]:
        say(error.message)
    if len(failed) > NAMED:
        say(f"... and {len(failed) - NAMED} more plans did not answer")


async def _of(client: Client, listed: Listed, patience: float) -> list[Pending] | PlanError:
    try:
        view = await ask_view(client, listed.plan_id, BriefView, "plan", BRIEF, patience=patience)
    except PlanError as error:
        if error.code not in UNSPOKEN:
            raise
        return error
    return [Pending(plan_id=listed.plan_id, title=view.title, **dict(item)) for item in view.pending]


def _gone(asked: Sequence[Listed], answers: Mapping[str, list[Pending] | PlanError]) -> dict[str, bool]:
    """Queues for which no plan answered: their workers have stopped, so the next batch does not wait for them again."""
    queues = {listed.queue for listed in asked}
    answered = {listed.queue for listed in asked if not _is_unserved(answers[listed.plan_id])}
    return dict.fromkeys(queues - answered, True)


def _is_unserved(answer: list[Pending] | PlanError) -> bool:
    return isinstance(answer, NoWorker) and answer.code == NoWorker.code


def _named(plans: Sequence[str]) -> str:
    more = len(plans) - NAMED
    return ", ".join(plans[:NAMED]) + (f" and {more} more" if more > 0 else "")
