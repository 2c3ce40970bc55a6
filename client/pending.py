"""What people are asked for, in all plans and agents that run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from temporalio.client import Client

from client.errors import NoWorker
from client.listing import Listed, list_plans
from client.queues import listeners
from client.speaking import RPC_TIMEOUT, ask
from plans.errors import PlanError
from plans.inquiry import BRIEF
from plans.model import Value

AT_ONCE = 16
"""Plans asked at the same time."""
NAMED = 5
"""Plans named when those are told that could not be asked."""
UNSPOKEN = ("NO_WORKER", "PLAN_NOT_FOUND", "QUERY_FAILED")
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
    since: str | None = None
    deadline: str | None = None
    version: int


async def pending(client: Client, say: Callable[[str], None] = lambda _: None) -> AsyncIterator[Pending]:
    """What people are asked for. Plans whose worker does not answer are left out, which `say` is told at the end."""
    silent: dict[str, bool] = {}
    """Whether nobody answers for the plans of a queue."""
    left_out: list[str] = []
    asking = [listed async for listed in list_plans(client, running=True, agents=True) if listed.waiting != []]
    for start in range(0, len(asking), AT_ONCE):
        some = asking[start : start + AT_ONCE]
        for queue in {listed.queue for listed in some} - silent.keys():
            silent[queue] = not await listeners(client, queue)
        answers = await asyncio.gather(*(_of(client, listed) for listed in some if not silent[listed.queue]))
        found = dict(answers)
        for listed in some:
            answer = found.get(listed.plan_id)
            if isinstance(answer, list):
                for item in answer:
                    yield item
            elif answer is None or answer.code != "PLAN_NOT_FOUND":
                left_out.append(listed.plan_id)
            if isinstance(answer, NoWorker):  # who listened has gone, and is not waited for with every plan
                silent[listed.queue] = True
    if left_out:
        say(_told(left_out))


async def _of(client: Client, listed: Listed) -> tuple[str, list[Pending] | PlanError]:
    try:
        view = await ask(client, listed.plan_id, "plan", BRIEF, patience=RPC_TIMEOUT.total_seconds())
    except PlanError as error:
        if error.code not in UNSPOKEN:
            raise
        return listed.plan_id, error
    common = {"planId": listed.plan_id, "title": view.get("title", "")}
    return listed.plan_id, [Pending.model_validate({**item, **common}) for item in view["pending"]]


def _told(left_out: Sequence[str]) -> str:
    named, more = ", ".join(left_out[:NAMED]), len(left_out) - NAMED
    also = f" and {more} more" if more > 0 else ""
    return f"Not asked, as no worker answers for them: {named}{also}. Start one: plan worker"
