"""What a plan changed in files, and taking it back: asked of the workers that have its workspaces.

Both run as a small workflow of their own, since the plan may have ended and its files may be on another machine.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import ActivityError, ApplicationError, TimeoutError, WorkflowAlreadyStartedError
from temporalio.service import RPCError

from client.errors import NoWorker
from client.ids import plan_id
from client.rpc import RPC_TIMEOUT, ask_view, describe, translated
from plans.errors import PlanError, Refused
from plans.files.undo import ChangesReport, ChangesRequest
from plans.views.models import PlanView

CEILING = timedelta(minutes=30)


async def file_changes(client: Client, plan: str, step_id: str | None = None, *, diffs: bool = True) -> ChangesReport:
    """What each call of the plan changed, oldest first. Raises PlanNotFound, NoWorker, Refused UNKNOWN_STEP."""
    request = ChangesRequest(plan_id=plan_id(plan), step_id=step_id, diffs=diffs)
    return await _answer(client, plan, request, f"files-{plan_id(plan)}-{uuid.uuid4().hex[:8]}")


async def undo(
    client: Client, plan: str, step_id: str | None = None, *, dry_run: bool = False, partly: bool = False
) -> ChangesReport:
    """Put back what the plan, or one step of it, changed; `refused` says what could not be, and then nothing is done.

    `partly`: what can be put back is. Raises Refused NOT_ENDED when the plan has not ended, otherwise as above.
    """
    description = await describe(client, plan)
    if description.status is WorkflowExecutionStatus.RUNNING and not dry_run:
        name = plan_id(plan)
        raise Refused(f"plan '{name}' still runs; wait for its end, or end it with `plan cancel {name}`", "NOT_ENDED")
    request = ChangesRequest(plan_id=plan_id(plan), step_id=step_id, undo=True, dry_run=dry_run, partly=partly)
    return await _answer(client, plan, request, f"undo-{plan_id(plan)}")


async def _answer(client: Client, plan: str, request: ChangesRequest, workflow_id: str) -> ChangesReport:
    view = await ask_view(client, plan, PlanView, "plan")
    steps = {step.id: step for step in view.steps}
    if request.step_id is not None and request.step_id not in steps:
        raise Refused(f"plan '{plan_id(plan)}' has no step '{request.step_id}'", "UNKNOWN_STEP")
    default = (await describe(client, plan)).task_queue
    queues = [view.queue or default, *(step.queue for step in steps.values())]
    request = request.model_copy(update={"queues": list(dict.fromkeys(filter(None, queues)))})
    try:
        found: dict[str, Any] = await client.execute_workflow(
            "ChangesWorkflow",
            request.model_dump(mode="json"),
            result_type=dict,
            id=workflow_id,
            task_queue=default,
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
            execution_timeout=CEILING,
            rpc_timeout=RPC_TIMEOUT,
        )
    except WorkflowAlreadyStartedError:
        raise Refused(f"plan '{plan_id(plan)}' is being undone at this moment; wait for that", "UNDO_RUNNING") from None
    except WorkflowFailureError as error:
        raise _failure(error, plan) from error
    except RPCError as error:
        raise translated(error, plan) from error
    tools = {name: step.tool for name, step in steps.items()}
    return _with_tools(ChangesReport.model_validate(found), tools)


def _with_tools(report: ChangesReport, tools: Mapping[str, str]) -> ChangesReport:
    """The report with the tool of each call, which the log of effects does not hold."""
    calls = [
        call if call.tool else call.model_copy(update={"tool": tools.get(call.step_id, "")}) for call in report.calls
    ]
    return report.model_copy(update={"calls": calls})


def _failure(error: WorkflowFailureError, plan: str) -> PlanError:
    cause = error.cause.cause if isinstance(error.cause, ActivityError) else error.cause
    if isinstance(cause, ApplicationError):
        return PlanError(cause.message, cause.type or "UNDO_FAILED")
    if isinstance(cause, TimeoutError):
        return NoWorker(f"no worker serves a queue of plan '{plan_id(plan)}', so its files are not reached; start one")
    return PlanError(str(cause), "UNDO_FAILED")
