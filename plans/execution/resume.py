"""A new run that goes on from an ended one: what is kept, what is done again. Pure; the old run is left as it was.

Kept: completed steps with their values and files, what people skipped or denied, log, file state and agents.md. Done
again: failed, blocked and never-run steps (`resumed`), a step and all that follows from it as well (`rerun_from`),
or one step alone (`rerun_only`). The new run is a draft: its worker judges the plan again before anything starts.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from datetime import datetime
from typing import Any

from pydantic import Field, ValidationError

from plans.definition.dependencies import dependencies
from plans.definition.json_path import PathError, put
from plans.errors import Refused
from plans.execution.schedule import left_out, reset_to_draft
from plans.model import Plan, Step, Value
from plans.run import Result, Run, Status, StepState

INTERRUPTED = "interrupted"
"""How the reason begins for which a run that was interrupted has stopped."""
LEFT_OUT = "LEFT_OUT"
_RUN = re.compile(r"(.+)-r([1-9][0-9]*)")
_SETTABLE = ("args", "description", "timeout", "retry", "when", "notes", "requiresApproval")


class Replacement(Value):
    """Another value for a place of a step: `args.path`."""

    step_id: str
    path: str
    value: Any = Field(default=None, description="None takes away what stands there.")


def base_id(plan_id: str) -> str:
    """The id of the first run of a plan: `x` for `x-r3`."""
    found = _RUN.fullmatch(plan_id)
    return found[1] if found and int(found[2]) > 1 else plan_id


def run_id(base: str, number: int) -> str:
    """The id of a later run: the second is `x-r2`."""
    return f"{base}-r{number}"


def resumed(run: Run, new_id: str, now: datetime, by: str = "") -> Run:
    """A run that does what is not done. Raises Refused when everything is. Agents that were at work go on."""
    again = {name for name, state in run.steps.items() if not _is_done(state)}
    if not again:
        raise Refused("every step is done; there is nothing to resume. `plan rerun` does steps again", "NOTHING_TO_DO")
    made = _next(run, run.plan, again, new_id, _sentence("resumes", run, again, by), now)
    made.agents = {name: kept for name, kept in run.agents.items() if name in again}
    return made


def rerun_from(
    run: Run, step_id: str, new_id: str, now: datetime, by: str = "", changes: Sequence[Replacement] = ()
) -> Run:
    """A run that does a step again, all that follows from it, and what is not done. Raises Refused."""
    _require(run, step_id)
    again = _following(run.plan, step_id) | {name for name, state in run.steps.items() if not _is_done(state)}
    plan = _changed(run.plan, changes, again)
    return _next(run, plan, again, new_id, _sentence(f"reruns from '{step_id}'", run, again, by), now)


def rerun_only(
    run: Run, step_id: str, new_id: str, now: datetime, by: str = "", changes: Sequence[Replacement] = ()
) -> Run:
    """A run that does one step again and nothing else. Raises Refused when what it needs is not done."""
    step = _require(run, step_id)
    lacking = [name for name in dependencies(step) if name in run.steps and not _is_done(run.steps[name])]
    if lacking:
        text = f"step '{step_id}' needs '{lacking[0]}', which is not done; use --from {lacking[0]}"
        raise Refused(text, "NOT_DONE")
    plan = _changed(run.plan, changes, {step_id})
    made = _next(run, plan, {step_id}, new_id, _sentence(f"reruns only '{step_id}'", run, {step_id}, by), now)
    for name, state in run.steps.items():
        if name != step_id and not _is_done(state):
            made.steps[name] = _not_wanted(f"only '{step_id}' was to run again", now)
    return made


def was_cut_short(run: Run) -> bool:
    """Whether an interruption kept something from being done; one that came too late changed nothing."""
    return run.interrupted and not all(
        state.status in (Status.COMPLETED, Status.SKIPPED) for state in run.steps.values()
    )


def _is_done(state: StepState) -> bool:
    """Completed, or skipped by a person or a condition: it is not done again."""
    return state.status in (Status.COMPLETED, Status.SKIPPED) and _code(state) != LEFT_OUT


def _next(run: Run, plan: Plan, again: Collection[str], new_id: str, sentence: str, now: datetime) -> Run:
    made = run.model_copy(deep=True)
    made.plan = plan.model_copy(update={"id": new_id, "task_id": plan.task_id or plan.id})
    made.options = run.options.model_copy(update={"review": False})
    reset_to_draft(made)
    made.resumes, made.interrupted, made.aborted, made.agents = run.plan.id or "", False, False, {}
    for name in again:
        kept = run.decisions.get(name)
        if kept is not None and run.steps[name].calls:
            del made.decisions[name]  # it was about a call that was made
        made.steps[name] = StepState(args=run.steps[name].args if name in made.decisions else None)
    made.note("resumes", sentence, now)
    return made


def _not_wanted(reason: str, now: datetime) -> StepState:
    return left_out(reason, Result(ok=False, error=reason, code=LEFT_OUT, timestamp=now))


def _code(state: StepState) -> str | None:
    return state.result.code if state.result else None


def _require(run: Run, step_id: str) -> Step:
    found = next((step for step in run.plan.steps if step.id == step_id), None)
    if found is None:
        raise Refused(f"the plan has no step '{step_id}'; `plan show` lists its steps", "UNKNOWN_STEP")
    return found


def _following(plan: Plan, step_id: str) -> set[str]:
    """The step, and every step that needs it, directly or not."""
    dependents: dict[str, list[str]] = {}
    for step in plan.steps:
        for name in dependencies(step):
            dependents.setdefault(name, []).append(step.id)
    found, left = {step_id}, deque([step_id])
    while left:
        fresh = [name for name in dependents.get(left.popleft(), ()) if name not in found]
        found.update(fresh)
        left.extend(fresh)
    return found


def _changed(plan: Plan, changes: Sequence[Replacement], again: Collection[str]) -> Plan:
    if not changes:
        return plan
    steps = {step.id: step.model_dump(mode="json", exclude_unset=True) for step in plan.steps}
    for change in changes:
        _put(steps, change, again)
    try:
        made = [Step.model_validate(data) for data in steps.values()]
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise Refused(f"{'.'.join(map(str, first['loc']))}: {first['msg']}", "BAD_EDIT") from error
    return plan.model_copy(update={"steps": made, "version": plan.version + 1})


def _put(steps: Mapping[str, dict[str, Any]], change: Replacement, again: Collection[str]) -> None:
    if change.step_id not in steps:
        raise Refused(f"the plan has no step '{change.step_id}'; `plan show` lists its steps", "UNKNOWN_STEP")
    if change.step_id not in again:
        raise Refused(f"step '{change.step_id}' is not done again, so a change of it counts for nothing", "TOO_LATE")
    if change.path.split(".")[0].split("[")[0] not in _SETTABLE:
        raise Refused(f"'{change.path}' cannot be set here; set one of {', '.join(_SETTABLE)}", "BAD_EDIT")
    try:
        put(steps[change.step_id], change.path, deepcopy(change.value))
    except PathError as error:
        raise Refused(f"step '{change.step_id}': {change.path}: {error}", "BAD_EDIT") from error


def _sentence(what: str, run: Run, again: Collection[str], by: str) -> str:
    count = len(again)
    who = f" by {by}" if by else ""
    kept = len(run.steps) - count
    return f"{what}, plan '{run.plan.id}'{who}: {count} step{'s' * (count != 1)} to do, {kept} kept"
