"""Sends messages to a plan as updates, which it answers: decisions, controls, answers, events and edits.

An update takes effect only once a worker has accepted it. Until then the server keeps it in memory, so what no worker
accepts in time is reported as NoWorker, with how to find out what became of it.

Updates, since they answer. The SDK's deadline is for one request, which it repeats without end, so there is one here.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any
from uuid import uuid4

from temporalio.client import (
    Client,
    RPCTimeoutOrCancelledError,
    WorkflowUpdateFailedError,
    WorkflowUpdateHandle,
    WorkflowUpdateStage,
)
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from plansurvive.client.errors import NoWorker, PlanClosed
from plansurvive.client.ids import plan_id, workflow_id
from plansurvive.client.rpc import PATIENCE, SERVER_REFUSED, UNSERVED_SECONDS, about, require_worker, unanswered
from plansurvive.plans.edits import MAX_BYTES
from plansurvive.plans.errors import InvalidPlan, PlanError, Refused
from plansurvive.plans.execution.messages import MAX_BYTES as MESSAGE_BYTES
from plansurvive.plans.execution.messages import check_size
from plansurvive.plans.model import Problem


async def update(
    client: Client, plan: str, name: str, message: dict[str, Any], patience: float = PATIENCE
) -> dict[str, Any]:
    """Send an update and wait for its result, without a time limit once a worker has accepted it.

    `patience`: seconds until a worker must have accepted it; if none polls the plan's queue, it is five at most. Raises
    Refused, InvalidPlan with every problem, PlanClosed, PlanNotFound; NoWorker if no worker accepts it in time: it was
    sent, and takes effect if a worker comes before the server restarts. What is too large is refused without sending.
    """
    check_size(message, MAX_BYTES if name == "edit" else MESSAGE_BYTES)
    try:
        with about(plan):
            accepted = await _accepted(client, plan, name, message, patience)
            return dict(await accepted.result())
    except WorkflowUpdateFailedError as error:
        raise _refusal(error.cause) from error


async def _accepted(
    client: Client, plan: str, name: str, message: dict[str, Any], patience: float
) -> WorkflowUpdateHandle[Any]:
    """The update, once a worker has accepted it. Raises NoWorker, and PlanError if the server takes no more of them."""
    handle = client.get_workflow_handle(workflow_id(plan))
    # One id for every attempt: the server applies an id once, however often it is sent.
    update_id, was_sent = uuid4().hex, False
    began, seconds = time.monotonic(), min(UNSERVED_SECONDS, patience)
    while True:
        try:
            # A timeout of our own: the SDK's is for one request, and it repeats requests that the server answers with
            # "not accepted yet" without end.
            async with asyncio.timeout(seconds):
                return await handle.start_update(
                    name, message, id=update_id, wait_for_stage=WorkflowUpdateStage.ACCEPTED
                )
        except (RPCTimeoutOrCancelledError, TimeoutError) as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():  # the SDK reports the caller's own cancellation as a timeout
                raise asyncio.CancelledError from error
            was_sent = True
        except RPCError as error:
            if error.status is not RPCStatusCode.RESOURCE_EXHAUSTED:  # 10 of a plan wait at a time: its turn comes
                raise
        left = began + patience - time.monotonic()
        if time.monotonic() >= began + min(UNSERVED_SECONDS, patience):
            await _require_answer(client, plan, patience if left <= 0 else None, was_sent=was_sent)
        seconds = max(left, 0.1)
        await asyncio.sleep(0.1)


async def _require_answer(client: Client, plan: str, waited: float | None, *, was_sent: bool) -> None:
    """Raise if no worker polls the plan's queue, or, after `waited` seconds, in any case."""
    try:
        await require_worker(client, plan)
        if waited is not None:
            raise await unanswered(client, plan, waited)
    except NoWorker as error:
        name = plan_id(plan)
        if not was_sent:
            text = f"nothing was sent to plan '{name}': the server takes no more messages until some are handled"
            raise PlanError(f"{text}; {error.message}", SERVER_REFUSED) from error
        fate = "The message was sent and takes effect when a worker serves the plan"
        unless = f"unless the Temporal server restarts before; check then: plan show {name}"
        raise NoWorker(f"{error.message}. {fate}, {unless}", error.code) from error


def _refusal(cause: BaseException | None) -> PlanError:
    if not isinstance(cause, ApplicationError):
        return PlanError(str(cause), "REFUSED")
    detail = cause.details[0] if cause.details and isinstance(cause.details[0], dict) else {}
    problems = [Problem.model_validate(each) for each in detail.get("problems", [])]
    if problems:
        return InvalidPlan(problems)
    if cause.type == "AcceptedUpdateCompletedWorkflow":
        return PlanClosed("the plan ended before the message was handled; `plan summary` shows how it ended")
    kind = PlanClosed if cause.type == "PLAN_CLOSED" else Refused
    return kind(cause.message, cause.type)
