"""Sends messages to a plan as updates: decisions, controls, answers, events and edits (`runtime.updates`).

Until a worker has accepted one, the server keeps it in memory, so what no worker accepts in time is reported as
NoWorker, with how to find out what became of it.
"""

from __future__ import annotations

from typing import Any

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.update.v1 import UpdateRef
from temporalio.api.workflowservice.v1 import PollWorkflowExecutionUpdateRequest
from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from plansurvive.client.closed import closed
from plansurvive.client.errors import NoWorker, PlanClosed
from plansurvive.client.ids import plan_id, workflow_id
from plansurvive.client.rpc import PATIENCE, RPC_TIMEOUT, SERVER_REFUSED, about, require_worker, unanswered
from plansurvive.plans.errors import InvalidPlan, PlanError, Refused
from plansurvive.plans.execution.messages import MAX_BYTES, check_size
from plansurvive.plans.model import Problem
from plansurvive.runtime import updates


async def update(
    client: Client, plan: str, name: str, message: dict[str, Any], patience: float = PATIENCE,
    max_bytes: int = MAX_BYTES,
) -> dict[str, Any]:  # fmt: skip
    """Send an update and wait for its result, without a time limit once a worker has accepted it.

    `patience`: seconds until a worker must have accepted it; if none polls the plan's queue, it is five at most. Raises
    Refused, InvalidPlan with every problem, PlanClosed, PlanNotFound; NoWorker if no worker accepts it in time: it was
    sent, and takes effect if a worker comes before the server drops it; SERVER_REFUSED if it was not sent, because too
    many others were. What is larger than `max_bytes` of JSON is refused without sending.
    """
    check_size(message, max_bytes)

    async def why_not(update_id: str, *, is_late: bool) -> PlanError | None:
        why = await _unserved(client, plan, patience if is_late else None)
        if why is None or not isinstance(why, NoWorker):
            return why
        return await _fate(client, plan, update_id, why) if update_id else _not_sent(plan_id(plan), why)

    try:
        with about(plan):
            return await updates.send(client, workflow_id(plan), name, message, patience, why_not)
    except PlanClosed as error:
        raise await closed(client, plan, message) from error
    except WorkflowUpdateFailedError as error:
        raise _refusal(error.cause) from error


async def _unserved(client: Client, plan: str, waited: float | None) -> PlanError | None:
    """Why no worker has accepted it: none polls the plan's queue, or, after `waited` seconds, in any case."""
    try:
        await require_worker(client, plan)
    except NoWorker as error:
        return error
    return None if waited is None else await unanswered(client, plan, waited)


async def _fate(client: Client, plan: str, update_id: str, why: NoWorker) -> PlanError:
    """Why it was not accepted, and what becomes of it."""
    name = plan_id(plan)
    if not await is_held(client, plan, update_id):
        return _not_sent(name, why)
    fate = "The message was sent and takes effect when a worker serves the plan"
    unless = f"unless the Temporal server drops it before, as it does when it restarts; check then: plan show {name}"
    return NoWorker(f"{why.message}. {fate}, {unless}", why.code)


def _not_sent(plan: str, why: NoWorker) -> PlanError:
    text = f"the message to plan '{plan}' was not sent: the server takes no more until some are handled"
    return PlanError(f"{text}; {why.message}", SERVER_REFUSED)


async def is_held(client: Client, plan: str, update_id: str) -> bool:
    """Whether the server has the update: a request that ended in a timeout may have been refused all along."""
    execution = WorkflowExecution(workflow_id=workflow_id(plan))
    reference = UpdateRef(workflow_execution=execution, update_id=update_id)
    request = PollWorkflowExecutionUpdateRequest(namespace=client.namespace, update_ref=reference)
    try:
        await client.workflow_service.poll_workflow_execution_update(request, timeout=RPC_TIMEOUT)
    except RPCError as error:
        return error.status is not RPCStatusCode.NOT_FOUND
    return True


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
