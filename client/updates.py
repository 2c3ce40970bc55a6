"""Changing a plan by update: sent once, answered by the plan itself, its refusals as the project's errors."""

from __future__ import annotations

from typing import Any

from temporalio.client import Client, RPCTimeoutOrCancelledError, WorkflowUpdateFailedError, WorkflowUpdateStage
from temporalio.exceptions import ApplicationError

from client.errors import NoWorker, PlanClosed
from client.ids import workflow_id
from client.rpc import RPC_TIMEOUT, about
from plans.errors import InvalidPlan, PlanError, Refused
from plans.model import Problem


async def update(client: Client, plan: str, name: str, message: dict[str, Any]) -> dict[str, Any]:
    """The plan's answer, however long it takes once it is accepted.

    Raises Refused, InvalidPlan with every problem, PlanClosed, PlanNotFound; NoWorker when nobody takes the message.
    """
    handle = client.get_workflow_handle(workflow_id(plan))
    try:
        with about(plan):
            accepted = await handle.start_update(
                name, message, wait_for_stage=WorkflowUpdateStage.ACCEPTED, rpc_timeout=RPC_TIMEOUT
            )
            return dict(await accepted.result())
    except WorkflowUpdateFailedError as error:
        raise _refusal(error.cause) from error
    except RPCTimeoutOrCancelledError as error:
        raise NoWorker(f"plan '{plan}' did not answer; is there a worker? start one: plan worker") from error


def _refusal(cause: BaseException | None) -> PlanError:
    if not isinstance(cause, ApplicationError):
        return PlanError(str(cause), "REFUSED")
    detail = cause.details[0] if cause.details and isinstance(cause.details[0], dict) else {}
    problems = [Problem.model_validate(each) for each in detail.get("problems", [])]
    if problems:
        return InvalidPlan(problems)
    if cause.type == "AcceptedUpdateCompletedWorkflow":
        return PlanClosed("the plan ended before the change could be made; `plan summary` tells how")
    kind = PlanClosed if cause.type == "PLAN_CLOSED" else Refused
    return kind(cause.message, cause.type)
