"""Lists and undoes the file changes of a plan, on the workers that have its workspaces.

Both run as a short workflow of their own: the plan may have ended, and its files may be on another machine. It is
deleted when its answer has been read.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.client import (
    Client,
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
)
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import ActivityError, ApplicationError, TimeoutError, WorkflowAlreadyStartedError
from temporalio.service import RPCError

from plansurvive.client.children.family import Relative, family
from plansurvive.client.errors import NoWorker
from plansurvive.client.ids import plan_id
from plansurvive.client.rpc import RPC_TIMEOUT, describe, translated
from plansurvive.plans.definition.scopes import walk_step
from plansurvive.plans.errors import PlanError, Refused
from plansurvive.plans.files.changes import ChangesReport, ChangesRequest
from plansurvive.plans.flow.ids import template_of
from plansurvive.plans.flow.undone import shown_steps
from plansurvive.plans.run import Run

CEILING = timedelta(minutes=30)
"""Execution timeout of the workflow."""


async def file_changes(client: Client, plan: str, step_id: str | None = None, *, diffs: bool = True) -> ChangesReport:
    """The files that each tool call of the plan, or of one step, created, changed and deleted, oldest call first.

    `diffs`: include unified diffs. Raises NoWorker, and Refused (UNKNOWN_STEP).
    """
    request = ChangesRequest(plan_id=plan_id(plan), step_id=step_id, diffs=diffs)
    return await _answer(client, plan, request, f"files-{plan_id(plan)}-{uuid.uuid4().hex[:8]}")


async def undo(
    client: Client,
    plan: str,
    step_id: str | None = None,
    *,
    dry_run: bool = False,
    partly: bool = False,
) -> ChangesReport:
    """Undo the file changes of an ended plan, or of one of its steps: of a loop, of an item `a[x]`, or `a[*].b`.

    If a file cannot be restored, for example because someone else has changed it since, it is listed in `refused` and
    nothing is undone; with `partly`, the other files are restored. `dry_run` only reports what would be done, also
    while the plan is running. Of a plan that was resumed, the changes of its earlier runs are undone as well. Raises
    NoWorker, and Refused (NOT_ENDED, UNKNOWN_STEP, UNDO_RUNNING).
    """
    if not dry_run:
        await ended(client, plan)
    request = ChangesRequest(plan_id=plan_id(plan), step_id=step_id, undo=True, dry_run=dry_run, partly=partly)
    return await _answer(client, plan, request, f"undo-{plan_id(plan)}")


async def ended(client: Client, plan: str) -> WorkflowExecutionDescription:
    """The description of an ended plan. Raises Refused (NOT_ENDED)."""
    description = await describe(client, plan)
    if description.status is WorkflowExecutionStatus.RUNNING:
        name = plan_id(plan)
        raise Refused(
            f"plan '{name}' is still running; wait until it ends, or cancel it with `plan cancel {name}`", "NOT_ENDED"
        )
    return description


async def _answer(client: Client, plan: str, request: ChangesRequest, workflow_id: str) -> ChangesReport:
    relatives = await family(client, plan)
    tools = {name: tool for each in relatives for name, tool in _tools(each)}
    if request.step_id is not None and template_of(request.step_id) not in tools:
        name = plan_id(plan)
        raise Refused(f"plan '{name}' has no step '{request.step_id}'; `plan show {name}` lists them", "UNKNOWN_STEP")
    default = (await describe(client, plan)).task_queue
    queues = [queue for each in relatives if each.run for queue in _queues(each.run, default)]
    named = {each.id: each.prefix for each in relatives}
    request = request.model_copy(update={"queues": list(dict.fromkeys(filter(None, queues))), "plans": named})
    try:
        handle = await client.start_workflow(
            "ChangesWorkflow",
            request.model_dump(mode="json"),
            result_type=dict,
            id=workflow_id,
            task_queue=default,
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
            execution_timeout=CEILING,
            rpc_timeout=RPC_TIMEOUT,
            static_summary=f"{'undo' if request.undo else 'files'} of plan {request.plan_id}"[:200],
        )
        result: dict[str, Any] = await handle.result()
    except WorkflowAlreadyStartedError:
        text = f"another undo of plan '{plan_id(plan)}' is running; try again when it has ended"
        raise Refused(text, "UNDO_RUNNING") from None
    except WorkflowFailureError as error:
        raise _failure(error, plan) from error
    except RPCError as error:
        raise translated(error, plan) from error
    if not request.undo or request.dry_run:
        await _removed(client, handle)
    return _with_tools(ChangesReport.model_validate(result), tools)


async def _removed(client: Client, handle: WorkflowHandle[Any, Any]) -> None:
    """Delete the workflow that has answered, so that it does not stand among the plans in Temporal's lists.

    One that undid something stays for its audit record; one that failed, for whoever looks for the cause; so does one
    where this client may not delete.
    """
    execution = WorkflowExecution(workflow_id=handle.id, run_id=handle.first_execution_run_id or "")
    request = DeleteWorkflowExecutionRequest(namespace=client.namespace, workflow_execution=execution)
    with suppress(RPCError):
        await client.workflow_service.delete_workflow_execution(request, timeout=RPC_TIMEOUT)


def _queues(run: Run, default: str | None) -> list[str | None]:
    """The task queues of a plan and its steps."""
    return [run.home_queue or default, *(step.queue for each in shown_steps(run) for _, step in walk_step(each))]


def _tools(relative: Relative) -> Iterator[tuple[str, str]]:
    """The places of a plan's steps as the plan above names them, each with its tool."""
    for each in shown_steps(relative.run) if relative.run else ():
        for path, step in walk_step(each):
            yield template_of(relative.prefix + path), step.tool


def _with_tools(report: ChangesReport, tools: Mapping[str, str]) -> ChangesReport:
    """Fill in the tool of each call, which the effect log does not record."""
    calls = [
        call if call.tool else call.model_copy(update={"tool": tools.get(template_of(call.step_id), "")})
        for call in report.calls
    ]
    return report.model_copy(update={"calls": calls})


def _failure(error: WorkflowFailureError, plan: str) -> PlanError:
    cause = error.cause.cause if isinstance(error.cause, ActivityError) else error.cause
    if isinstance(cause, ApplicationError):
        return PlanError(cause.message, cause.type or "UNDO_FAILED")
    if isinstance(cause, TimeoutError):
        text = f"no worker polls the task queues of plan '{plan_id(plan)}', so its files cannot be accessed"
        return NoWorker(f"{text}; start one: plan worker")
    return PlanError(str(cause), "UNDO_FAILED")
