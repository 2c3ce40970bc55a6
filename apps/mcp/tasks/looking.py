"""Reads a plan as a task: from Temporal its times and whether it has ended, from the plan the rest.

Adds nothing to any history. A plan that does not answer is a task that is working: it continues as soon as a worker
serves it. What has ended needs no worker.

The id of a task is the plan's id, and all it says is read from the plan at that moment: no second store that could
differ or die with a process. `tasks/cancel` cancels once; repeated, it would end a rollback.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta

from mcp.types import CallToolResult
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client, WorkflowExecutionDescription, WorkflowExecutionStatus
from temporalio.service import RPCError

from plansurvive.apps.mcp.common.errors import told
from plansurvive.apps.mcp.common.replies import reply
from plansurvive.apps.mcp.common.rules import Deciding
from plansurvive.apps.mcp.common.where import where
from plansurvive.apps.mcp.decisions.open import PATIENCE, Waiting, waiting
from plansurvive.apps.mcp.tasks.wire import Task, TaskStatus, Times, changed, progress
from plansurvive.apps.mcp.template_tools.answers import answered
from plansurvive.apps.mcp.tools.views import shown
from plansurvive.client.errors import NoWorker
from plansurvive.client.ids import plan_id
from plansurvive.client.requests.connected import Connected
from plansurvive.client.rpc import RPC_TIMEOUT, ask_view, describe, has_ended
from plansurvive.client.verbs.summary import wait
from plansurvive.plans.errors import InvalidPlan, PlanError
from plansurvive.plans.run import PlanStatus
from plansurvive.plans.text.lists import number_of, some
from plansurvive.plans.views.models import BriefView
from plansurvive.plans.views.queries import BRIEF
from plansurvive.plans.views.summary import Summary

_LOST: dict[WorkflowExecutionStatus, tuple[TaskStatus, str]] = {
    WorkflowExecutionStatus.TERMINATED: ("cancelled", "the plan was terminated from outside"),
    WorkflowExecutionStatus.TIMED_OUT: (
        "failed",
        "the plan exceeded its execution timeout and was ended by the server",
    ),
}
"""Ends of a workflow that the plan itself knows nothing of."""


async def task_of(here: Connected, plan: str, deciding: Deciding, view: BriefView | None = None) -> Task:
    """The plan as a task at this moment. `view`: the newest one, if it is known. Raises PlanNotFound, NotConnected.

    `deciding`: what the client may ask its person now.
    """
    description = await describe(here.client, plan)
    if description.status is not WorkflowExecutionStatus.RUNNING:
        return await _ended(here, plan, description)
    try:
        view = view or await ask_view(here.client, plan, BriefView, "plan", BRIEF, patience=PATIENCE)
        queue = description.task_queue
        waits = await waiting(here.client, here.settings, plan, view, queue, deciding)
    except NoWorker as error:
        return Task(plan_id(plan), "working", error.message, _times(description))
    except PlanError as error:
        # A plan that was refused at its start answers no queries, and has just ended.
        if error.code != "QUERY_FAILED" or not await has_ended(here.client, plan):
            raise
        return await _ended(here, plan, await describe(here.client, plan))
    times = _times(description)._replace(updated=changed(view, description.start_time))
    requests = {each.key: each.ask.request(each.replied.why) for each in waits.asked}
    status: TaskStatus = "input_required" if requests else "working"
    return Task(plan_id(plan), status, f"{progress(view)}{_wanted(here, plan, waits)}", times, requests)


def _wanted(here: Connected, plan: str, waits: Waiting) -> str:
    """What waits for a person, and where it is decided if not here."""
    texts = [f"{number_of(len(waits.asked), 'decision')} asked of the person"] if waits.asked else []
    steps = list(dict.fromkeys(item.step_id for item in waits.elsewhere))
    if steps or waits.review:
        names = some(steps, 5)
        what = " and ".join([*(["review"] if waits.review else []), *([f"decisions on {names}"] if names else [])])
        texts.append(f"awaits {what}. {where(here, plan).text}")
    return "".join(f"; {text}" for text in texts)


def _times(description: WorkflowExecutionDescription) -> Times:
    began = description.start_time
    return Times(began, description.close_time or began, age=datetime.now(UTC) - began)


async def _ended(here: Connected, plan: str, description: WorkflowExecutionDescription) -> Task:
    kept = await _retention(here.client)
    times = _times(description)
    times = times._replace(kept=times.updated - times.created + kept if kept else None)
    name = plan_id(plan)
    if description.status in _LOST:
        status, message = _LOST[description.status]
        return Task(name, status, message, times)
    try:
        summary = await wait(here.client, plan)
    except InvalidPlan as error:
        return Task(name, "completed", "the plan was refused", times, result=told(error))
    if summary.status is PlanStatus.CANCELLED:
        return Task(name, "cancelled", summary.stopped or "the plan was cancelled", times)
    if not summary.counts:  # the workflow failed before the plan could say anything about its end
        return Task(name, "failed", summary.stopped or "the plan's workflow failed", times)
    return Task(name, "completed", sentence(summary), times, result=await result_of(here, plan, summary))


async def result_of(here: Connected, plan: str, summary: Summary) -> CallToolResult:
    """What the call that started the plan would have answered if it had waited for the end."""
    found, text = await shown(here, plan)
    if found.outcome is not None and found.outcome.value is not None:
        return await answered(here, plan)
    return reply(found, f"{sentence(summary)}\n{text}").model_copy(update={"is_error": not summary.is_completed})


def sentence(summary: Summary) -> str:
    """How a plan ended, in a sentence."""
    counted = ", ".join(f"{number} {name}" for name, number in summary.counts.items() if name != "total" and number)
    stopped = f"; {summary.stopped}" if summary.stopped else ""
    return f"{summary.status.value} in {summary.duration:.1f} s: {counted}{stopped}"


async def _retention(client: Client) -> timedelta | None:
    """For how long the server keeps what has ended; None if it does not say."""
    with suppress(RPCError):
        request = DescribeNamespaceRequest(namespace=client.namespace)
        found = await client.workflow_service.describe_namespace(request, timeout=RPC_TIMEOUT)
        return found.config.workflow_execution_retention_ttl.ToTimedelta() or None
    return None
