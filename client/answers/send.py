"""Sends answers and events to a plan: as updates, which it answers, or as signals where that is not possible."""

from __future__ import annotations

from typing import Any

from temporalio.client import Client

from client import decisions
from client.decisions import Signal, authored
from plans.execution.messages import Via


async def answer(
    client: Client, plan: str, step_id: str, value: Any, *, by: str = "", digest: str | None = None,
    via: Via = "", verified: bool = False,
) -> str:  # fmt: skip
    """Answer the question of a step, now or before it asks. Returns the plan's sentence about the answer.

    `value`: any JSON value that the question asks for; `digest` (`Pending.digest`): refuse if the question is another
    one; `via` and `verified`: as in `Choice`. Raises Refused with the reason (INVALID_ANSWER: the question stays;
    ALREADY_DECIDED, STALE_DIGEST, ...), PlanClosed. NoWorker: the answer was delivered and counts as soon as a worker
    serves the plan.
    """
    message: dict[str, Any] = {"stepId": step_id, "value": value}
    message |= authored(by, via, verified=verified) | ({"digest": digest} if digest else {})
    return await _sent(client, plan, "answer", message, step_id)


async def event(
    client: Client, plan: str, name: str, data: Any = None, *, by: str = "", via: Via = "", verified: bool = False
) -> str:
    """Tell a plan that something has happened, for the steps that wait for it, now or later.

    `via` and `verified`: as in `Choice`. Returns the plan's sentence: which steps receive it, or that it is kept.
    Raises Refused, PlanClosed; NoWorker as `answer`.
    """
    message = {"name": name, **({"data": data} if data is not None else {}), **authored(by, via, verified=verified)}
    return await _sent(client, plan, "event", message, None)


async def _sent(client: Client, plan: str, name: Any, message: dict[str, Any], step_id: str | None) -> str:
    found = await decisions.delivered(client, plan, name, message, Signal(name, message, step_id))
    return found if isinstance(found, str) else str(found["text"])
