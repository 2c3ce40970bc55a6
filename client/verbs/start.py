"""Starts plans: picks the id, builds the workflow's input and what Temporal's UI shows from the start.

The plan is sent as its author wrote it, and the worker validates it again. Ids are never reused: starting with the id
of a plan that exists or existed fails.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from temporalio.client import Client
from temporalio.common import Priority, TypedSearchAttributes, WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from plansurvive.client import ids
from plansurvive.client.errors import PlanExists
from plansurvive.client.priority import priority_of
from plansurvive.client.rpc import RPC_TIMEOUT, translated
from plansurvive.plans.definition.parsing import read_plan
from plansurvive.plans.errors import InvalidPlan
from plansurvive.plans.model import Plan, Problem, Value
from plansurvive.plans.run import Options, PlanStatus, Run
from plansurvive.plans.text.lists import number_of
from plansurvive.plans.text.safe_text import line
from plansurvive.plans.views.markdown import markdown
from plansurvive.runtime import search_attributes
from plansurvive.workflows.search_attributes import first

SUMMARY_BYTES = 200
DETAILS_BYTES = 20_000
"""Maximum bytes of a static summary and of static details that Temporal accepts."""


class Started(Value):
    """A plan or agent that was started. `plan_id` is the name to pass to the functions of `client.runs`."""

    plan_id: str
    workflow_id: str
    run_id: str


async def start(
    client: Client,
    plan: Any,
    *,
    options: Options | None = None,
    plan_id: str | None = None,
    name: str = "",
    queue: str = "plans",
) -> Started:
    """Start a plan and return without waiting for it.

    `plan` is the content of a plan file as Python data. `plan_id` overrides the plan's own `id`; without either, an id
    is generated from the title or `name`. `queue` is the task queue whose workers run the plan. Raises InvalidPlan
    (with every problem of the plan's form), PlanExists, BadPlanId, NotConnected.
    """
    checked = read_plan(plan)
    if isinstance(checked, list):
        raise InvalidPlan(checked)
    given = plan_id if plan_id is not None else checked.id
    given_options = (options or Options()).model_dump(mode="json", exclude_none=True)
    status = PlanStatus.REVIEW if options and options.review else PlanStatus.RUNNING
    index, priority = first(status.value, checked.title), priority_of(checked, options)

    async def begin(chosen: str) -> Started:
        request = {"plan": {**plan, "id": chosen}, "options": given_options}
        shown = shown_of(checked, checked.title or name or chosen, options)
        return await launch(client, request, chosen, queue, shown, index, priority)

    return await (ids.with_generated(checked.title or name, begin) if given is None else begin(ids.checked(given)))


async def start_run(client: Client, run: Run, queue: str) -> Started:
    """Start a run that resumes another one, under the id of its plan. Raises PlanExists, BadPlanId, NotConnected."""
    chosen = run.plan.id or ""
    shown = shown_of(run.plan, run.plan.title or chosen, run.options)
    shown["memo"] |= _origin(run.plan.task_id, run.plan.created_at or run.created or run.started)
    shown["memo"]["resumes"] = run.resumes
    request = {"run": run.model_dump(mode="json", exclude_defaults=True)}
    return await launch(
        client,
        request,
        chosen,
        queue,
        shown,
        first(PlanStatus.RUNNING.value, run.plan.title, run.resumes),
        priority_of(run.plan, run.options),
    )


async def launch(
    client: Client,
    request: dict[str, Any],
    chosen: str,
    queue: str,
    shown: dict[str, Any],
    index: TypedSearchAttributes | None = None,
    priority: Priority = Priority.default,
    kind: str = "PlanWorkflow",
) -> Started:
    """Start a workflow under the id of a plan.

    `shown`: memo, static summary and static details; `index`: search attributes, less those that the server does not
    know. Raises PlanExists, NotConnected, and InvalidPlan if the request is too large.
    """
    try:
        handle = await client.start_workflow(
            kind,
            request,
            id=ids.workflow_id(chosen),
            task_queue=queue,
            id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
            id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
            rpc_timeout=RPC_TIMEOUT,
            search_attributes=index,
            priority=priority,
            **shown,
        )
    except WorkflowAlreadyStartedError:
        text = f"the id '{chosen}' has been used before, and ids are never reused; choose another with --id"
        raise PlanExists(text) from None
    except RPCError as error:
        # The server rejects search attributes that it does not know; plans run without them.
        is_invalid = error.status is RPCStatusCode.INVALID_ARGUMENT
        if index is not None and is_invalid and "search attribute" in error.message.lower():
            known = await search_attributes.known(client)
            left = TypedSearchAttributes([pair for pair in index if pair.key.name in known])
            fewer = left if 0 < len(left) < len(index) else None  # always fewer than before, so this terminates
            return await launch(client, request, chosen, queue, shown, fewer, priority, kind=kind)
        if "size exceeds limit" in error.message or "larger than max" in error.message:
            text = "the plan is larger than the server accepts (2 MB); split it, or move long texts into files"
            raise InvalidPlan([Problem(code="PLAN_TOO_LARGE", message=text)]) from error
        raise translated(error, chosen) from error
    return Started(plan_id=chosen, workflow_id=handle.id, run_id=handle.first_execution_run_id or "")


def shown_of(plan: Plan, title: str, options: Options | None = None) -> dict[str, Any]:
    """Memo, static summary and static details of the plan, for lists and Temporal's UI."""
    limit = options.timeout if options and options.timeout is not None else plan.timeout
    count = len(plan.steps)
    return {
        "memo": {
            "title": title[:1_000],
            "steps": count,
            **({"timeout": limit} if limit else {}),
            **({"labels": plan.labels} if plan.labels else {}),
            **({"by": options.by} if options and options.by else {}),
            **_origin(plan.task_id, plan.created_at),
        },
        "static_summary": cut(f"{line(title)} · {number_of(count, 'step')}", SUMMARY_BYTES),
        "static_details": cut(markdown(plan), DETAILS_BYTES),
    }


def _origin(task_id: str | None, created: datetime | None) -> dict[str, str]:
    """The task and the creation of a plan in its memo, if they are not its id and its start."""
    named = {"taskId": task_id} if task_id else {}
    return named | ({"createdAt": created.isoformat()} if created else {})


def cut(text: str, limit: int) -> str:
    """Truncate a text to `limit` bytes without splitting a character."""
    data = text.encode()
    return text if len(data) <= limit else data[: limit - 3].decode(errors="ignore") + "…"
