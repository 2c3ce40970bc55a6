"""Interrupts a plan, and resumes or reruns an ended one in a new run that reuses the finished steps.

The second run of plan `x` is plan `x-r2`, and so on. A run names its predecessor in its memo and its view (`resumes`).
An ended run cannot be written to, so the opposite direction (`resumedBy`) is computed from the later runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from pydantic import Field
from temporalio.client import Client, WorkflowExecutionDescription, WorkflowExecutionStatus

from plansurvive.client.children.resuming import unfinished
from plansurvive.client.decisions import authored
from plansurvive.client.errors import PlanExists, PlanNotFound
from plansurvive.client.feature import read_run, rules_of_features
from plansurvive.client.files_since import files_since
from plansurvive.client.ids import plan_id, recorded_id, workflow_id
from plansurvive.client.later_runs import MAX_RUNS, later_runs
from plansurvive.client.rpc import RPC_TIMEOUT, about, ask, ask_view, describe, memo_of
from plansurvive.client.undone import undone_since
from plansurvive.client.verbs.continuing import Continued, NextRun, id_in_features, next_of_features
from plansurvive.client.verbs.start import Started, start_run
from plansurvive.plans.child_ids import child_id
from plansurvive.plans.editing.next_run import Replacement
from plansurvive.plans.errors import PlanError, Refused
from plansurvive.plans.execution import resume as resumption
from plansurvive.plans.execution.accounts import caught_up
from plansurvive.plans.execution.messages import Via
from plansurvive.plans.execution.resume import base_id, rerun_from, rerun_only, run_id
from plansurvive.plans.model import Value
from plansurvive.plans.run import PlanStatus, Run
from plansurvive.plans.views.models import BriefView
from plansurvive.plans.views.queries import BRIEF


class Links(Value):
    """The runs before and after a run."""

    resumes: str | None = Field(default=None, description="Id of the plan that this one resumes.")
    resumed_by: list[str] = Field(default_factory=list, description="Ids of the plans that resumed this one.")


async def interrupt(client: Client, plan: str, by: str = "", *, via: Via = "", verified: bool = False) -> None:
    """End the plan so that it can be resumed: running steps finish, nothing else starts, all results are kept.

    Returns at once; `wait` for the end. `by` is recorded. Sent as a signal: it needs no worker. Raises PlanClosed.
    """
    with about(plan):
        message = authored(by, via, verified=verified)
        await client.get_workflow_handle(workflow_id(plan)).signal("interrupt", message, rpc_timeout=RPC_TIMEOUT)


async def resume(
    client: Client,
    plan: str,
    by: str = "",
    changes: Sequence[Replacement] = (),
    *,
    waivers: bool = True,
    workspace: str | None = None,
    verified: bool = False,
) -> Started:
    """Continue an ended plan in a new run: failed, blocked and unstarted steps run, the others keep their results.

    A step that only reads, and whose file has changed since, runs again if nothing that is done rests on its value.
    The new run has an id of its own (`x-r2`), returned in `plan_id`. `changes` are of its steps that run, or of the
    plan's budget. Also resumes agents, without changes. `waivers`: False if no person continues it, as in `unwaived`.
    `workspace`: the absolute path of the directory to work in, whichever directory it was before (`rerun` too).
    `verified`: a page's login vouches for `by`.
    Raises Refused: NOT_ENDED, ALREADY_RESUMED (continue the later
    run instead), NOTHING_TO_DO, TOO_MANY_RUNS, UNKNOWN_STEP, TOO_LATE, BAD_EDIT, NOT_A_PLAN.
    """
    later = (await links(client, plan)).resumed_by
    if later:
        raise _resumed_already(plan, later[-1])
    return await _new_run(
        client,
        plan,
        lambda run, new_id, now: resumption.resumed(run, new_id, now, by, changes),
        Continued(by, False, verified, bool(changes), waivers, workspace),
    )


async def rerun(
    client: Client,
    plan: str,
    *,
    start_at: str | Sequence[str] | None = None,
    only: str | None = None,
    changes: Sequence[Replacement] = (),
    by: str = "",
    waivers: bool = True,
    workspace: str | None = None,
    verified: bool = False,
) -> Started:
    """Run steps of an ended plan again in a new run: with all their dependents (`start_at`) or one alone (`only`).

    Exactly one of the two is given. `start_at`: ids, and patterns of items such as `each[*].build`. `changes` replace
    arguments in the new run. `waivers` and `verified` as for `resume`. Raises Refused: BAD_USAGE, NOT_ENDED,
    UNKNOWN_STEP, BAD_EDIT, NOT_DONE (`only` needs the results of its dependencies), and NOT_A_PLAN for an agent.
    """
    _at_most_one(start_at, only)
    how = Continued(by, True, verified, False, waivers, workspace)
    if only is not None:
        return await _new_run(
            client, plan, lambda run, new_id, now: rerun_only(run, only, new_id, now, by, changes), how
        )
    return await _new_run(
        client, plan, lambda run, new_id, now: rerun_from(run, start_at or (), new_id, now, by, changes), how
    )


def _at_most_one(start_at: str | Sequence[str] | None, only: str | None) -> None:
    """Raises Refused (BAD_USAGE) if both are given. What can be named, if neither is, only the plan says."""
    if start_at and only is not None:
        text = "name either the step to start from (--from STEP) or the only step to run (--only STEP)"
        raise Refused(text, "BAD_USAGE")


class WouldRun(Value):
    """What a new run would do with the steps of an ended one; a block or loop stands for all that is inside it."""

    plan_id: str = Field(description="The id that the new run would have.")
    runs: list[str] = Field(description="Steps that would run.")
    conditions: dict[str, str] = Field(
        default_factory=dict,
        description="By step of these that would run only if a condition holds: the condition.",
    )
    decided_by: dict[str, list[str]] = Field(
        default_factory=dict, description="By step with a condition: the steps that would run and decide it."
    )
    skips: dict[str, str] = Field(
        default_factory=dict, description="By step that would be skipped once more: the condition that does not hold."
    )
    read_again: dict[str, str] = Field(
        default_factory=dict,
        description="By step of these that is done and would read its file again: the file, which has changed since.",
    )
    keeps: list[str] = Field(description="Steps that would keep their results.")
    keep_read: dict[str, str] = Field(
        default_factory=dict,
        description="By step that would keep what it read from a file that has changed since: the file.",
    )
    leaves_out: list[str] = Field(description="Steps that are not done, and would not run (`--only`).")
    items: dict[str, int] = Field(
        default_factory=dict,
        description="By loop of which it keeps items, how many others have not started and would.",
    )


async def would_run(
    client: Client,
    plan: str,
    *,
    reruns: bool = False,
    start_at: str | Sequence[str] | None = None,
    only: str | None = None,
    changes: Sequence[Replacement] = (),
) -> WouldRun:
    """What `rerun` would do, or `resume` without `reruns`. Raises as they do, and NOT_A_PLAN for an agent."""
    _at_most_one(start_at, only)
    description = await _ended(client, plan)
    state = await ask(client, plan, "state")
    if "order" in state:
        raise Refused(f"'{plan_id(plan)}' is an agent's run; --dry-run is for plans", "NOT_A_PLAN")
    later = (await links(client, plan)).resumed_by
    if later and not reruns:
        raise _resumed_already(plan, later[-1])
    base, now = base_id(plan_id(plan)), datetime.now(UTC)
    new_id = run_id(base, len([name async for name, _ in later_runs(client, base)]) + 2)
    run = caught_up(await undone_since(client, read_run(state)), rules_of_features(), now)
    read = resumption.ReadAgain(run, {}, {})
    if only is not None:
        new = rerun_only(run, only, new_id, now, "", changes)
    elif reruns:
        new = rerun_from(run, start_at or (), new_id, now, "", changes)
    else:
        read = await files_since(client, run, description.task_queue)
        run = read.run
        new = resumption.resumed(run, new_id, now, "", changes)
    found = resumption.foreseen(run, new)
    known = resumption.conditions(run, new, found.runs)
    open_ones = {name: each for name, each in known.items() if each.decided_by}
    skips = {name: each.when for name, each in known.items() if name not in open_ones and not each.holds}
    return WouldRun(
        plan_id=new_id,
        runs=[name for name in found.runs if name not in skips],
        conditions={name: each.when for name, each in open_ones.items()},
        decided_by={name: each.decided_by for name, each in open_ones.items()},
        skips=skips,
        read_again=dict(read.again),
        keeps=found.keeps,
        keep_read=dict(read.kept),
        leaves_out=found.leaves_out,
        items=found.items,
    )


def _resumed_already(plan: str, later: str) -> Refused:
    text = f"plan '{plan_id(plan)}' was already resumed as '{later}'; continue with that run"
    return Refused(text, "ALREADY_RESUMED")


async def links(client: Client, plan: str) -> Links:
    """The run that this one resumes, and the runs that resumed it. Needs no worker. Raises PlanNotFound."""
    memo = await memo_of(await describe(client, plan))
    name = plan_id(plan)
    later = [each async for each, resumes in later_runs(client, base_id(name)) if resumes == name]
    of, step_id = recorded_id(memo.get("planId")), recorded_id(memo.get("stepId"))
    if of and step_id:
        later += await _later_children(client, name, of, step_id)
    return Links(resumes=recorded_id(memo.get("resumes")), resumed_by=later)


async def _later_children(client: Client, child: str, plan: str, step_id: str) -> list[str]:
    """Ids of the children that resumed this agent or child plan when its plan was resumed."""
    found: list[str] = []
    for later in (await links(client, plan)).resumed_by:
        name = id_in_features(child, later, step_id) or child_id(later, step_id, 1)
        with suppress(PlanNotFound):
            if (await memo_of(await describe(client, name))).get("resumes") == child:
                found.append(name)
    return found


async def _new_run(client: Client, plan: str, make: Callable[[Run, str, datetime], Run], how: Continued) -> Started:
    description = await _ended(client, plan)
    state = await ask(client, plan, "state")
    begin = next_of_features(state, how) or await _next_of_plan(client, state, description.task_queue, make, how)
    base = base_id(plan_id(plan))
    taken = [name async for name, _ in later_runs(client, base)]
    for number in range(len(taken) + 2, MAX_RUNS):
        try:
            return await begin(client, run_id(base, number), datetime.now(UTC), description.task_queue)
        except PlanExists:  # another client took this number in the meantime
            continue
    raise Refused(f"plan '{base}' has reached the limit of {MAX_RUNS} runs; start it as a new plan", "TOO_MANY_RUNS")


async def _next_of_plan(
    client: Client, state: Any, queue: str, make: Callable[[Run, str, datetime], Run], how: Continued
) -> NextRun:
    run, rules = await undone_since(client, read_run(state)), rules_of_features()
    if not how.reruns:
        run = (await files_since(client, run, queue, how.workspace)).run
        run.agents = run.agents | await unfinished(client, run)

    async def begin(client: Client, new_id: str, now: datetime, queue: str) -> Started:
        new = how.begun(make(caught_up(run, rules, now), new_id, now))
        parts = rules.parts_for_next(run, rerun=how.reruns)
        new.options = new.options.model_copy(update={"parts": parts})
        return await start_run(client, new, queue)

    return begin


async def _ended(client: Client, plan: str) -> WorkflowExecutionDescription:
    description = await describe(client, plan)
    if description.status is WorkflowExecutionStatus.RUNNING:
        raise Refused(await _how_it_stands(client, plan, plan_id(plan)), "NOT_ENDED")
    return description


async def _how_it_stands(client: Client, plan: str, name: str) -> str:
    """Of a plan that has not ended, what to do instead of resuming it."""
    status = PlanStatus.RUNNING
    with suppress(PlanError):
        status = (await ask_view(client, plan, BriefView, "plan", BRIEF, patience=2.0)).status
    if status is PlanStatus.REVIEW:
        return f"plan '{name}' is in review and has not ended: `plan begin {name}` starts it, or continues it"
    if status is PlanStatus.PAUSED:
        return f"plan '{name}' is paused and has not ended: `plan unpause {name}` continues it"
    way = f"`plan watch {name}` follows it, and `plan interrupt {name}` stops it, so that it can be resumed"
    return f"plan '{name}' has not ended, and only ended plans are resumed: {way}"
