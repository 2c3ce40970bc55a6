"""Lists the plans of a server from its visibility store: title, status, times. Needs no worker.

The search attribute `PlanStatus` is more precise than Temporal's status and is used where the server has it, unless the
two contradict each other: a plan that was terminated is not running, whatever its last `PlanStatus` was.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import suppress
from datetime import UTC, datetime

from pydantic import Field
from temporalio.client import Client, WorkflowExecution, WorkflowExecutionStatus
from temporalio.common import SearchAttributeKey
from temporalio.service import RPCError, RPCStatusCode

from plansurvive.client.ids import plan_id, workflow_id
from plansurvive.client.rpc import memo_of, translated
from plansurvive.client.undos import Undo, undos
from plansurvive.plans.model import Value
from plansurvive.plans.run import PlanStatus
from plansurvive.runtime.search_attributes import OF_NO_PLAN

PLANS = f"WorkflowType = 'PlanWorkflow' AND ExecutionStatus != 'ContinuedAsNew' AND {OF_NO_PLAN}"
AGENTS_TOO = (
    "WorkflowType IN ('PlanWorkflow', 'AgentWorkflow', 'CodingAgentWorkflow') AND ExecutionStatus != 'ContinuedAsNew'"
)
AWAITING = "(PlanPending IS NOT NULL OR PlanStatus IN ('review', 'asking') OR PlanStatus IS NULL)"
"""Those that may await a person: `asking` stands for PlanPending where that is missing, and no status for no index."""
MAX_LABELS = 20
MAX_ID = 200
"""Characters of a task id that are shown: anybody may write a memo."""
_STATUS = SearchAttributeKey.for_keyword("PlanStatus")
_PENDING = SearchAttributeKey.for_keyword_list("PlanPending")
_SCHEDULE = SearchAttributeKey.for_keyword("TemporalScheduledById")
"""Set by the server; every server knows it."""
_BY_TEMPORAL = {
    WorkflowExecutionStatus.RUNNING: PlanStatus.RUNNING,
    WorkflowExecutionStatus.COMPLETED: PlanStatus.COMPLETED,
    WorkflowExecutionStatus.FAILED: PlanStatus.FAILED,
    WorkflowExecutionStatus.TIMED_OUT: PlanStatus.FAILED,
}


class Listed(Value):
    """One plan or agent as listed by the server."""

    plan_id: str
    task_id: str
    """The task the plan serves; the plan's id if it names none."""
    workflow_id: str
    title: str
    status: PlanStatus
    steps: int | None = None
    """Number of steps at the start; None for an agent."""
    done: int | None = None
    """Of an ended plan, how many of them were completed or skipped; None if that is not known."""
    waiting: list[str] | None = None
    """Ids of the steps awaiting approval; None if the server does not index them, so that the plan must be queried."""
    created_at: datetime
    """When the plan was written, or its first run started."""
    started_at: datetime
    ended_at: datetime | None = None
    is_open: bool
    queue: str
    schedule: str | None = None
    """Name of the schedule that started it."""
    has_deadline: bool = False
    """Whether it must have ended some time after it began."""
    host: str | None = None
    """The host that has its files, where workers have a workspace each."""
    labels: dict[str, str] = Field(default_factory=dict)
    """Those of the plan."""
    by: str = ""
    """Who started it; empty if that is not known."""
    undo: Undo | None = None
    """What `plan undo` has undone of it since; None also where nobody asked (`with_undos`)."""


async def list_plans(
    client: Client,
    *,
    running: bool = False,
    limit: int | None = None,
    agents: bool = False,
    schedule: str | None = None,
    awaiting: bool = False,
    statuses: Collection[PlanStatus] = (),
    since: datetime | None = None,
    kept: Sequence[Callable[[Listed], bool]] = (),
) -> AsyncIterator[Listed]:
    """The plans of the server, those that have not ended first; those that run as steps of others are left out.

    `running`: only plans that have not ended. `limit`: at most this many. `agents`: with agents, and plans that run as
    steps. `schedule`: only those that the schedule of this name started. `awaiting`: only those that may await a
    person, if the server has the search attributes that tell. `statuses`: only plans with one of these. `since`: only
    those that started at that time or later. `kept`: only those for which all of these say so. Raises NotConnected,
    BadPlanId for what cannot be a name.
    """
    query, left = _query(running, agents, schedule, since), limit
    try:
        # The index does not know the status exactly (a terminated plan), so `statuses` are sorted out here.
        wanted = client.list_workflows(query + f" AND {AWAITING}" * awaiting, limit=None if statuses or kept else limit)
        async for execution in wanted:
            listed = await _listed(execution)
            if (statuses and listed.status not in statuses) or not all(keeps(listed) for keeps in kept):
                continue
            yield listed
            left = None if left is None else left - 1
            if left == 0:
                return
    except RPCError as error:
        if not awaiting or error.status is not RPCStatusCode.INVALID_ARGUMENT:
            raise translated(error, "") from error
        everything = list_plans(
            client, running=running, limit=limit, agents=agents, schedule=schedule, statuses=statuses, since=since,
            kept=kept,
        )  # fmt: skip
        async for listed in everything:
            yield listed


async def with_undos(client: Client, plans: Sequence[Listed]) -> list[Listed]:
    """The plans, each with what was undone of it since its end."""
    ended = {each.plan_id: each.ended_at for each in plans if not each.is_open and each.ended_at is not None}
    found = await undos(client, ended) if ended else {}
    return [each.model_copy(update={"undo": found[each.plan_id]}) if each.plan_id in found else each for each in plans]


def _query(running: bool, agents: bool, schedule: str | None, since: datetime | None) -> str:
    """What is known of the plans, for the index. Raises BadPlanId."""
    query = (AGENTS_TOO if agents else PLANS) + (" AND ExecutionStatus = 'Running'" if running else "")
    if schedule is not None:
        workflow_id(schedule)  # a name, and no part of a query
        query += f" AND {_SCHEDULE.name} = '{schedule}'"
    return query + (f" AND StartTime >= '{since.astimezone(UTC).isoformat()}'" if since is not None else "")


async def listed_by(client: Client, query: str) -> AsyncIterator[Listed]:
    """The plans that a visibility query finds. Raises NotConnected."""
    try:
        async for execution in client.list_workflows(query):
            yield await _listed(execution)
    except RPCError as error:
        raise translated(error, "") from error


async def _listed(execution: WorkflowExecution) -> Listed:
    memo = await memo_of(execution)
    steps = memo.get("steps")
    return Listed(
        plan_id=plan_id(execution.id),
        task_id=str(memo.get("taskId") or plan_id(execution.id))[:MAX_ID],
        workflow_id=execution.id,
        title=str(memo.get("title", "")),
        status=_status(execution),
        steps=steps if isinstance(steps, int) else None,
        done=done if isinstance(done := memo.get("done"), int) else None,
        waiting=_waiting(execution),
        created_at=_time(memo.get("createdAt")) or execution.start_time,
        started_at=execution.start_time,
        ended_at=execution.close_time,
        is_open=execution.status is WorkflowExecutionStatus.RUNNING,
        queue=execution.task_queue,
        schedule=execution.typed_search_attributes.get(_SCHEDULE),
        has_deadline=bool(memo.get("timeout")),
        host=str(memo.get("host") or "")[:MAX_ID] or None,
        labels=_labels(memo.get("labels")),
        by=str(memo.get("by") or "")[:MAX_ID],
    )


def _labels(found: object) -> dict[str, str]:
    """The labels in a memo, which anybody may have written."""
    pairs = list(found.items())[:MAX_LABELS] if isinstance(found, dict) else []
    return {str(name)[:MAX_ID]: value[:MAX_ID] for name, value in pairs if isinstance(value, str)}


def _time(text: object) -> datetime | None:
    """A time in a memo, which anybody may have written; None if it is none with a time zone."""
    with suppress(ValueError):
        found = datetime.fromisoformat(text) if isinstance(text, str) else None
        return found if found is not None and found.tzinfo is not None else None
    return None


def _status(execution: WorkflowExecution) -> PlanStatus:
    by_temporal = _BY_TEMPORAL.get(execution.status or WorkflowExecutionStatus.RUNNING, PlanStatus.CANCELLED)
    own = execution.typed_search_attributes.get(_STATUS)
    trusted = (WorkflowExecutionStatus.RUNNING, WorkflowExecutionStatus.COMPLETED)
    if execution.status is WorkflowExecutionStatus.FAILED and own == PlanStatus.PARTIAL:
        return PlanStatus.PARTIAL  # a run that must complete, for its schedule to pause on failure
    return PlanStatus(own) if own in list(PlanStatus) and execution.status in trusted else by_temporal


def _waiting(execution: WorkflowExecution) -> list[str] | None:
    if execution.typed_search_attributes.get(_STATUS) not in list(PlanStatus):
        return None
    return list(execution.typed_search_attributes.get(_PENDING) or [])
