"""Makes a schedule of a plan: the plan is part of it, as it was checked, and every run starts with the same.

The workspace, the inputs and the approvals given in advance are decided when the schedule is made. The runs have ids
that end in their time (`nightly-2027-03-28T05:00:00Z`); Temporal starts none twice.

A run needs no file: the schedule carries the plan as it was checked. `buffer` is BUFFER_ALL, since BUFFER_ONE drops
runs without a word; the catch-up window is a day and not a year. Rejected: a scheduler workflow of our own.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from pydantic import Field
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    SchedulePolicy,
    ScheduleState,
    ScheduleUpdate,
    ScheduleUpdateInput,
)
from temporalio.common import Priority, TypedSearchAttributes

from plansurvive.apps.schedules.server import KIND, ScheduleExists, about, checked_name, described
from plansurvive.apps.schedules.spec import CATCHUP, Timing, overlap_of, spec_of
from plansurvive.client import ids
from plansurvive.client.priority import priority_of
from plansurvive.client.rpc import RPC_TIMEOUT
from plansurvive.client.verbs.start import shown_of
from plansurvive.plans.definition.parsing import read_plan
from plansurvive.plans.errors import InvalidPlan
from plansurvive.plans.model import Plan, Value
from plansurvive.plans.run import Options, PlanStatus
from plansurvive.runtime import search_attributes
from plansurvive.workflows.search_attributes import first


class Rules(Value):
    """How a schedule treats its runs."""

    overlap: str = Field(default="skip", description="What happens to a run that is due while one is in progress.")
    catchup: timedelta = Field(default=CATCHUP, description="How late a run that was missed is still started.")
    pause_on_failure: bool = Field(default=False, description="Pause when a run does not complete.")
    limit: int | None = Field(default=None, ge=1, description="Number of runs after which nothing is started.")
    paused: bool = Field(default=False, description="Created paused.")
    note: str = Field(default="", max_length=1_000, description="A remark, shown with the schedule.")


async def create_schedule(
    client: Client,
    name: str,
    plan: Any,
    timing: Timing,
    *,
    rules: Rules | None = None,
    options: Options | None = None,
    queue: str = "plans",
    source: str = "",
) -> None:
    """Create a schedule that starts runs of a plan.

    `plan` is the content of a plan file as Python data; `source` says where it is from, for people. Raises InvalidPlan
    (with every problem of the plan's form), BadSchedule, ScheduleExists, NotConnected.
    """
    checked = read_plan(plan)
    if isinstance(checked, list):
        raise InvalidPlan(checked)
    given, chosen = rules or Rules(), checked_name(name)
    policy = SchedulePolicy(overlap_of(given.overlap), given.catchup, given.pause_on_failure)
    spec, note = spec_of(timing), given.note or ("created paused" if given.paused else None)
    state = ScheduleState(note, given.paused, given.limit is not None, given.limit or 0)
    request = request_for(plan, options or Options())
    action = await _action(client, chosen, checked, request, queue, priority_of(checked, options), options)
    memo = {"title": checked.title[:1_000], "source": source[:1_000], "by": options.by if options else ""}
    try:
        with about(chosen):
            schedule = Schedule(action, spec, policy, state)
            await client.create_schedule(chosen, schedule, memo=memo, rpc_timeout=RPC_TIMEOUT)
    except ScheduleAlreadyRunningError:
        way = f"`plan schedule update {chosen}` changes when it runs, `plan schedule delete {chosen}` removes it"
        raise ScheduleExists(f"there is a schedule {chosen!r} already; {way}; or choose another name") from None


async def _action(
    client: Client, name: str, plan: Plan, request: dict[str, Any], queue: str, priority: Priority,
    options: Options | None,
) -> ScheduleActionStartWorkflow:  # fmt: skip
    """What the server does at each of the times: it starts the workflow as `plan start` would."""
    unnamed = plan.model_copy(update={"id": None, "task_id": plan.task_id or plan.id})
    return ScheduleActionStartWorkflow(
        KIND,
        request,
        id=ids.workflow_id(name),
        task_queue=queue,
        priority=priority,
        typed_search_attributes=await _indexed(client, plan.title),
        **shown_of(unnamed, plan.title or name, options),
    )


def request_for(plan: Mapping[str, Any], options: Options) -> dict[str, Any]:
    """What each run is started with. Without the plan's own id, since every run gets one; it stays as the task."""
    data = {name: value for name, value in plan.items() if name != "id"}
    if plan.get("id") and not data.get("taskId"):
        data["taskId"] = plan["id"]
    given = options.model_copy(update={"review": False})
    return {"plan": data, "options": given.model_dump(mode="json", exclude_none=True, exclude_defaults=True)}


class Changes(Value):
    """What to change of a schedule; None: nothing."""

    timing: Timing | None = Field(default=None, description="Replaces all rules of when it runs.")
    overlap: str | None = None
    catchup: timedelta | None = None
    note: str | None = None
    limit: int | None = None


async def update_schedule(client: Client, name: str, changes: Changes) -> None:
    """Change when a schedule runs and how it treats its runs; the plan stays. Raises BadSchedule, ScheduleNotFound."""
    handle, _ = await described(client, name)
    spec = spec_of(changes.timing) if changes.timing else None
    overlap = overlap_of(changes.overlap) if changes.overlap else None

    def changed(found: ScheduleUpdateInput) -> ScheduleUpdate:
        schedule = found.description.schedule
        schedule.spec = spec or schedule.spec
        schedule.policy.overlap = overlap or schedule.policy.overlap
        schedule.policy.catchup_window = changes.catchup or schedule.policy.catchup_window
        if changes.note is not None:
            schedule.state.note = changes.note
        if changes.limit is not None:
            schedule.state.limited_actions, schedule.state.remaining_actions = True, changes.limit
        return ScheduleUpdate(schedule)

    with about(name):
        await handle.update(changed, rpc_timeout=RPC_TIMEOUT)


async def _indexed(client: Client, title: str) -> TypedSearchAttributes:
    """The search attributes to start runs with; those that the server does not know would keep all of them away."""
    known = await search_attributes.known(client)
    wanted = first(PlanStatus.RUNNING.value, title)
    return TypedSearchAttributes([pair for pair in wanted if pair.key.name in known])
