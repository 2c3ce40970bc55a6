"""Waits for the end of a plan and returns its summary as a value, however the workflow ended.

A completed workflow has the summary as its result and a failed one in the failure's details; a cancelled one is
queried for it. A plan that was terminated from outside has none, so a short one is made here.
"""

from __future__ import annotations

import asyncio

from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError
from temporalio.exceptions import ApplicationError, CancelledError, TerminatedError
from temporalio.service import RPCError

from plansurvive.client.errors import NoWorker, WorkerRefused
from plansurvive.client.ids import plan_id, workflow_id
from plansurvive.client.rpc import LOST, ask_view, describe, translated
from plansurvive.plans.model import Problem
from plansurvive.plans.run import ENDED, PlanStatus
from plansurvive.plans.views.summary import Summary

RETRY_SECONDS = 1.0
"""Seconds between attempts to reach a server that is unavailable."""


async def wait(client: Client, plan: str) -> Summary:
    """Wait until the plan has ended, without a time limit; `summary.status` says how it ended.

    A failed plan is not an error. A server that is unavailable for a while is retried. Raises InvalidPlan if the worker
    rejected the plan.
    """
    await describe(client, plan)
    handle = client.get_workflow_handle(workflow_id(plan))
    while True:
        try:
            return Summary.read(await handle.result())
        except WorkflowFailureError as error:
            return _of_failure(error, plan) or await _of_cancelled(client, plan, error.cause)
        except RPCError as error:
            if error.status not in LOST:
                raise translated(error, plan) from error
            await asyncio.sleep(RETRY_SECONDS)
        except Exception:  # of decoding: what somebody who terminated the plan sent along
            if (await describe(client, plan)).status is not WorkflowExecutionStatus.TERMINATED:
                raise
            return _short(plan, TerminatedError("terminated from outside"))


async def _of_cancelled(client: Client, plan: str, cause: BaseException | None) -> Summary:
    """The summary of a cancelled plan, queried from it; a short one if no worker answers."""
    try:
        found = await ask_view(client, plan, Summary, "summary")
    except NoWorker:
        return _short(plan, cause)
    if found.status in ENDED:
        return found
    return found.model_copy(update={"status": PlanStatus.CANCELLED})  # cancelled before it could do anything


def _of_failure(error: WorkflowFailureError, plan: str) -> Summary | None:
    """The summary in a workflow's failure; None if the plan must be queried for it. Raises InvalidPlan."""
    cause = error.cause
    if isinstance(cause, ApplicationError) and cause.type == "INVALID_PLAN":
        details = cause.details[0] if cause.details and isinstance(cause.details[0], list) else []
        found = [Problem.model_validate(detail) for detail in details]
        raise WorkerRefused(found or [Problem(code="INVALID_PLAN", message=cause.message)]) from error
    if isinstance(cause, ApplicationError) and cause.details and isinstance(cause.details[0], dict):
        return Summary.read(cause.details[0])
    if isinstance(cause, CancelledError):
        return None
    return _short(plan, cause)


def _short(plan: str, cause: BaseException | None) -> Summary:
    """A summary for a plan that left none: only its status and the reason."""
    if isinstance(cause, CancelledError):
        return Summary(plan_id=plan_id(plan), status=PlanStatus.CANCELLED, stopped="the plan was cancelled")
    if isinstance(cause, TerminatedError):
        return Summary(plan_id=plan_id(plan), status=PlanStatus.CANCELLED, stopped="terminated from outside")
    return Summary(plan_id=plan_id(plan), status=PlanStatus.FAILED, stopped=str(cause)[:500])
