"""What a person changes when an ended plan is resumed or rerun: only what runs again may be changed.

A change of a step inside a block (`resize.thumb`) holds for all items in which it runs again; one of an instance
(`resize[cat.png].thumb`) for that one alone, in later runs as well. What is done stays as it was.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from copy import deepcopy
from typing import Any, NamedTuple

from pydantic import Field, TypeAdapter, ValidationError

from plansurvive.plans.editing.draft import data_of
from plansurvive.plans.editing.inner_edits import edited_outline, is_inner, others, override_of, place_of
from plansurvive.plans.errors import InvalidPlan, Refused
from plansurvive.plans.expressions.json_path import PathError, first_name, put
from plansurvive.plans.flow.ids import lineage, template_of
from plansurvive.plans.model import Plan, Step, Value
from plansurvive.plans.model.plan import OfPlan, plan_names
from plansurvive.plans.model.step_fields import On, aliases
from plansurvive.plans.run import DONE, Run
from plansurvive.plans.run.again import Again
from plansurvive.plans.run.unknown_step import step_to_set

_SETTABLE = aliases(Step, On.RERUN)
_OF_PLAN = plan_names(OfPlan.RERUN)


class Replacement(Value):
    """A new value for a field of a step, at a path such as `args.path`; or in a field of the plan, as its budget."""

    step_id: str = Field(description="The step; or a field of the plan, if no step is named so.")
    path: str
    value: Any = Field(default=None, description="None removes the field.")


class Changed(NamedTuple):
    """The plan of the next run, and the steps inside blocks and loops that are not as the plan has them."""

    plan: Plan
    overrides: dict[str, Step]
    pins: dict[str, Step]
    unwaived: frozenset[str] = frozenset()
    """The steps that make another call now: a waiver of the one before is not about it, unless it was given again."""


def changed(run: Run, plan: Plan, changes: Sequence[Replacement], again: Again) -> Changed:
    """The plan with the changes. Raises Refused if one is of something that does not run again."""
    tops = {step.id for step in plan.steps}
    inner = {name: step for name, step in run.overrides.items() if template_of(name).split(".")[0] in tops}
    inner |= _of_approvers(run, again)
    if not changes:
        return Changed(plan, inner, dict(run.pins))
    steps = {step.id: step.model_dump(mode="json", exclude_unset=True) for step in plan.steps}
    rows, own = dict[str, dict[str, Any]](), dict[str, dict[str, Any]]()
    for change in changes:
        if change.step_id in _OF_PLAN and change.step_id not in steps:
            own.setdefault(change.step_id, {})[change.path] = change.value
        else:
            _put(_row(run, steps, rows, change, again), change)
    try:
        found = [Step.model_validate(data) for data in steps.values()]
        fields = dict[str, Any]()
        for name, values in own.items():
            whole = {**(plan.model_dump(include={name})[name] or {}), **values}
            fields[name] = TypeAdapter(Plan.model_fields[name].rebuild_annotation()).validate_python(whole)
        inner |= {name: override_of(name, row) for name, row in rows.items()}
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise Refused(f"{'.'.join(map(str, first['loc']))}: {first['msg']}", "BAD_EDIT") from error
    except InvalidPlan as error:
        raise Refused(error.problems[0].text, "BAD_EDIT") from error
    new = plan.model_copy(update={**fields, "steps": found, "version": plan.version + 1})
    other = frozenset(change.step_id for change in changes if re.match(r"args\b|tool\b|queue\b", change.path))
    waived = {change.step_id for change in changes if change.path == "requiresApproval"}
    return Changed(new, inner, _pins(run, new, again), other - waived)


def _row(
    run: Run, steps: dict[str, dict[str, Any]], rows: dict[str, dict[str, Any]], change: Replacement, again: Again
) -> dict[str, Any]:
    """The data of the step that a change names. Raises Refused."""
    name = change.step_id
    if name in steps:
        runs = name in again.names
    elif is_inner(run, name) and not run.steps[name].closes:
        runs = _runs_again(again, name)
        step = run.outline.step(name)
        rows.setdefault(name, data_of(step.model_copy(update={"args": run.args_of(step)})))
    else:
        runs = _template_runs_again(run, again, name)
    if name in rows:
        found = rows[name]
    else:
        top, *path = name.split(".")
        place = place_of(steps[top], path) if top in steps and path else None
        if place is None and name not in steps:
            raise step_to_set(name, change.path, run)
        found = steps[name] if place is None else place[0][place[1]]
    if not runs:
        raise Refused(f"step '{name}' does not run again, so it cannot be changed", "TOO_LATE")
    return found


def _put(row: dict[str, Any], change: Replacement) -> None:
    if first_name(change.path) not in _SETTABLE:
        raise Refused(f"'{change.path}' cannot be set here; set one of {', '.join(_SETTABLE)}", "BAD_EDIT")
    try:
        put(row, change.path, deepcopy(change.value))
    except PathError as error:
        raise Refused(f"step '{change.step_id}': {change.path}: {error}", "BAD_EDIT") from error


def _runs_again(again: Again, name: str) -> bool:
    """Whether an instance, or a step inside one, runs again, or what is not done inside it."""
    return name in again.names or any(each in again.whole for each in lineage(name))


def _template_runs_again(run: Run, again: Again, name: str) -> bool:
    """Whether a step inside a block or loop runs again, or for the first time, in any of its places."""
    if name.split(".")[0] in again.whole:
        return True
    around = set(lineage(name))
    for each, node in run.outline.nodes.items():
        place = template_of(each)
        if place not in around or not _runs_again(again, each):
            continue
        opened = run.opened.get(each)
        unbegun = node.kind == "each" and opened is not None and opened.began < len(opened.items or [])
        if place == name or unbegun or (node.kind != "call" and opened is None):
            return True
    return False


def _pins(run: Run, plan: Plan, again: Again) -> dict[str, Step]:
    """Steps that are done and that the changed plan does not reach, as they were."""
    pins = dict(run.pins)
    for was, node in others(run.outline, edited_outline(run, plan, {})):
        kept = was is not None and node.parent is not None and not _runs_again(again, node.id)
        if was is not None and kept and run.steps[node.id].status in DONE:
            pins[node.id] = was.step.model_copy(update={"id": "step"})
    return pins


def _of_approvers(run: Run, again: Again) -> dict[str, Step]:
    """Steps inside blocks and loops whose arguments their approvers changed, where they run again."""
    return {
        name: run.outline.step(name).model_copy(update={"id": "step", "args": state.args})
        for name, state in run.steps.items()
        if state.args is not None and is_inner(run, name) and not state.closes and _runs_again(again, name)
    }
