"""Sends answers and events to a plan."""

from __future__ import annotations

from typing import Any

from temporalio.client import Client

from plansurvive.client.children.naming import located
from plansurvive.client.decisions import authored
from plansurvive.client.updates import update
from plansurvive.plans.execution.messages import Via


async def answer(
    client: Client, plan: str, step_id: str, value: Any, *, by: str = "", digest: str | None = None,
    via: Via = "", verified: bool = False,
) -> str:  # fmt: skip
    """Answer the question of a step, now or before it asks. Returns the plan's sentence about the answer.

    A step of a child plan is named by its path, `deploy/upload`, or in the child itself.

    `value`: any JSON value that the question asks for; `digest` (`Pending.digest`): refuse if the question is another
    one; `via` and `verified`: as in `Choice`. Raises Refused with the reason (INVALID_ANSWER: the question stays;
    ALREADY_DECIDED, STALE_DIGEST, ...), PlanClosed, and NoWorker as `client.updates.update`.
    """
    plan, step_id = await located(client, plan, step_id)
    message: dict[str, Any] = {"stepId": step_id, "value": value}
    message |= authored(by, via, verified=verified) | ({"digest": digest} if digest else {})
    return str((await update(client, plan, "answer", message))["text"])


async def event(
    client: Client, plan: str, name: str, data: Any = None, *, by: str = "", via: Via = "", verified: bool = False
) -> str:
    """Tell a plan that something has happened, for the steps that wait for it, now or later.

    `via` and `verified`: as in `Choice`. Returns the plan's sentence: which steps receive it, or that it is kept.
    Raises Refused, PlanClosed; NoWorker as `answer`.
    """
    message = {"name": name, **({"data": data} if data is not None else {}), **authored(by, via, verified=verified)}
    return str((await update(client, plan, "event", message))["text"])
