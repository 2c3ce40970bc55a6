"""Task queues that a plan names and no worker polls: its steps there wait, and so does a plan that is to be checked."""

from __future__ import annotations

import asyncio

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.client import Client
from temporalio.service import RPCError

from plansurvive.plans.definition.scopes import walk
from plansurvive.plans.model import Plan
from plansurvive.plans.text.safe_text import line
from plansurvive.runtime.task_queues import listeners


async def unserved(client: Client, plan: Plan, own: str) -> list[str]:
    """A sentence for each queue of the plan's steps that no worker polls; `own` is the queue of the plan itself."""
    first: dict[str, str] = {}
    for path, step in walk(plan):
        queue = step.queue or plan.queue
        if queue and queue != own and (step.tool or step.undo):
            first.setdefault(queue, path)
    polled = await asyncio.gather(*(_is_polled(client, queue) for queue in first))
    return [_sentence(queue, first[queue]) for queue, is_polled in zip(first, polled, strict=True) if not is_polled]


def _sentence(queue: str, path: str) -> str:
    return (
        f"no worker polls the task queue '{line(queue)}' that step '{line(path)}' names, and the plan waits for one:"
        f" `plan worker --queues {line(queue)}` starts one"
    )


async def _is_polled(client: Client, queue: str) -> bool:
    try:
        return bool(await listeners(client, queue, TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY))
    except RPCError:
        return True  # not known
