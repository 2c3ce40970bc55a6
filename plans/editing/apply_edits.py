"""Applies edits to steps that have not begun. The edits of one message are applied together, or not at all.

`revise` changes nothing: it returns a Revised, which `plans.execution.revision` puts into effect, or raises. Edits are
allowed in review and, for steps that have not begun, while the plan runs or is paused. The edited plan is validated as
a whole; the problems a draft already has may be fixed one by one, but an edit may not add a new one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from datetime import datetime
from types import MappingProxyType
from typing import Any, NamedTuple

from plansurvive.plans.change_log import MAX_CHARACTERS, Revision, differences, shortened, step_lines
from plansurvive.plans.definition.checks.validation import certain, condition_problems, errors, problems
from plansurvive.plans.definition.dependencies import dependencies
from plansurvive.plans.definition.foreign_names import FIELDS
from plansurvive.plans.definition.near_names import Hints
from plansurvive.plans.editing.draft import Draft, has_begun
from plansurvive.plans.editing.edit_limits import check_open, check_queues, check_version
from plansurvive.plans.editing.edits import AddStep, Edit, Edits, MoveStep, RemoveStep, SetField, SkipStep, UnskipStep
from plansurvive.plans.editing.inner_checks import check_inside
from plansurvive.plans.editing.inner_edits import is_inner, override_of, siblings
from plansurvive.plans.editing.removed import as_removed
from plansurvive.plans.errors import InvalidPlan, Refused
from plansurvive.plans.expressions.json_path import PathError, first_name, put
from plansurvive.plans.flow.outline import Outline
from plansurvive.plans.model import Plan, Problem, Step
from plansurvive.plans.model.plan import OfPlan, plan_aliases
from plansurvive.plans.model.step_fields import On, aliases
from plansurvive.plans.run import Run, Status
from plansurvive.plans.run.people import is_verified
from plansurvive.plans.run.unknown_step import is_field, step_to_set
from plansurvive.plans.signature import signer_of

STEP_FIELDS = frozenset(aliases(Step, On.EDIT))
PLAN_FIELDS = frozenset(plan_aliases(OfPlan.EDIT))
STEP_SHAPE = "{id: NAME, tool: TOOL, args: {...}}"
STEPS_ARE_CHANGED = "steps are added, removed and moved one by one; a field of one is set as STEP.FIELD"


class Revised(NamedTuple):
    """The result of edits: the new plan, the steps whose skip changes, and the entry for the change log."""

    plan: Plan
    skipped: dict[str, str]
    unskipped: list[str]
    changed: set[str]
    problems: list[Problem]
    revision: Revision
    overrides: Mapping[str, Step] = MappingProxyType({})
    """Edited steps inside blocks and loops that have begun, by id."""
    drawn: Outline | None = None
    """The outline of the run with all this, if a block or loop has begun."""


def revise(run: Run, message: Edits, now: datetime, recovering: str | None = None) -> Revised:
    """Apply the edits; `run` itself is not changed. Raises Refused, or InvalidPlan with all new problems.

    `recovering` names the failed step of a recovery, the only step that may be edited after an attempt.
    """
    check_version(run, message.expect_version)
    check_open(run)
    # 1. The edits, one after the other: a later one may need what an earlier one made.
    draft = Draft.of(run, recovering)
    for edit in message.edits:
        _APPLY[type(edit)](draft, edit)
    plan = draft.plan(run.plan.version + 1)
    # 2. What they lead to as a whole. Conditions first: the other checks read them.
    unreadable = condition_problems(plan)
    if unreadable:
        raise InvalidPlan(unreadable)
    overrides = {name: override_of(name, data) for name, data in draft.inner.items()}
    check_queues(run, plan, overrides)
    found = problems(plan, run.facts.tools, language=run.language)
    # What fails for certain is an error only where the plan's check has found it, so that older runs replay.
    known = [each for each in certain(found) if each in run.problems]
    remaining = [*known, *(each for each in errors(found) if each not in known)]
    new = [problem for problem in remaining if _is_new(problem, run, message.edits)]
    if new:
        raise InvalidPlan(as_removed(new, message.edits))
    try:
        drawn = check_inside(run, plan, overrides, lambda name: name != recovering and has_begun(run, name))
    except InvalidPlan as error:
        raise InvalidPlan(as_removed(error.problems, message.edits)) from error
    # 3. The entry for the change log.
    inner = [line for name, step in overrides.items() for line in step_lines(name, run.outline.step(name), step)]
    ops = [_op(edit)[:MAX_CHARACTERS] for edit in message.edits[:20]]
    marks = [f"{name}: skipped" for name in draft.skipped] + [f"{name}: not skipped" for name in draft.unskipped]
    revision = Revision(
        version=plan.version,
        by=message.by,
        via=message.via,
        verified=is_verified(run, message),
        signed=signer_of(message),
        time=now,
        reason=message.comment,
        ops=ops,
        diff=[*differences(run.plan, plan), *shortened(inner), *shortened(marks)],
    )
    return Revised(plan, draft.skipped, list(draft.unskipped), draft.changed, remaining, revision, overrides, drawn)


def _is_new(problem: Problem, run: Run, edits: Sequence[Edit]) -> bool:
    """Whether edits add a problem. One of what they do not set stays the same in other words, as another version or a
    worker has them.
    """
    same = [each for each in run.problems if _place(each) == _place(problem)]
    return problem not in same and (not same or any(_sets(edit, problem) for edit in edits))


def _sets(edit: Edit, problem: Problem) -> bool:
    """Whether an edit is of what has a problem, or of what that is inside."""
    step_id = problem.step_id or ""
    if isinstance(edit, AddStep):
        return edit.step.get("id") in step_id.split(".")
    if not isinstance(edit, SetField):
        return False
    is_field = edit.step_id == problem.step_id and first_name(edit.path) == first_name(problem.field or "")
    return is_field or step_id.startswith(f"{edit.step_id}.")


def _place(problem: Problem) -> tuple[str, str | None, str | None]:
    return problem.code, problem.step_id, problem.field


def _set(draft: Draft, edit: SetField) -> None:
    root = first_name(edit.path)
    if edit.step_id is not None and is_field(edit.step_id):
        top = first_name(edit.step_id)
        if top not in draft.order and not is_inner(draft.run, edit.step_id):
            raise step_to_set(edit.step_id, edit.path, draft.run)
    allowed = PLAN_FIELDS if edit.step_id is None else STEP_FIELDS
    if root not in allowed:
        whose = "the plan" if edit.step_id is None else f"step '{edit.step_id}'"
        meant = _meant(draft, edit, root) or f"set one of {', '.join(sorted(allowed))}"
        raise Refused(f"'{root}' of {whose} cannot be set; {meant}", "UNKNOWN_FIELD")
    data = draft.head if edit.step_id is None else draft.step(edit.step_id)
    try:
        put(data, edit.path, deepcopy(edit.value))
    except PathError as error:
        raise Refused(f"{edit.path}: {error}", "UNKNOWN_FIELD") from None
    if edit.step_id is not None:
        draft.changed.add(edit.step_id)


def _meant(draft: Draft, edit: SetField, name: str) -> str:
    """What is meant by a field that cannot be set; empty if that is not clear."""
    if edit.step_id is None:
        if name == "steps":
            return STEPS_ARE_CHANGED
        near = Hints().near(name, PLAN_FIELDS)
        return f"did you mean '{near}'?" if near else ""
    step = draft.step(edit.step_id)
    spec = draft.run.facts.tools.get(str(step.get("tool")))
    known = list(spec.args_schema.get("properties", {})) if spec is not None else []
    if name in known:
        return f"it is an argument of {step['tool']}: set {edit.step_id}.args.{edit.path}"
    for fields, prefix in ((STEP_FIELDS, ""), (known, "args.")):
        if near := Hints().near(name, fields, FIELDS):
            return f"did you mean {edit.step_id}.{prefix}{near}?"
    return ""


def _add(draft: Draft, edit: AddStep) -> None:
    name = edit.step.get("id")
    if not isinstance(name, str) or not name:
        if "id" not in edit.step and "steps" in edit.step:
            raise Refused(f"this is a plan, and not a step; give one step: {STEP_SHAPE}", "PLAN_SCHEMA")
        raise Refused(f"a step has an `id`, a text that is not empty; write {STEP_SHAPE}", "PLAN_SCHEMA")
    anchor = edit.before or edit.after or ""
    inside = draft.place_inside(anchor)
    if name in draft.order if inside is None else any(row.get("id") == name for row in inside[0]):
        text = f"the plan has a step '{name}' already; give the new one another id, or set the fields of that one"
        raise Refused(text, "PLAN_DUPLICATE_ID")
    if inside is not None:
        rows, index = inside
        if draft.sibling(anchor, name) in draft.removed:
            raise Refused(f"'{name}' is removed by the same edits; set its fields instead", "PLAN_DUPLICATE_ID")
        rows.insert(index if edit.before else index + 1, deepcopy(edit.step))
        draft.changed.add(draft.sibling(anchor, name))
        return
    if edit.before is not None:
        place = draft.place(edit.before) - 1
    else:
        place = draft.place(edit.after) if edit.after is not None else len(draft.order)
    draft.order.insert(place, name)
    draft.steps[name] = deepcopy(edit.step)
    if name in draft.run.steps:  # the step replaces one removed before it: decisions on that one do not apply
        draft.changed.add(name)
        if _is_skipped(draft, name):
            _reopen(draft, name)


def _remove(draft: Draft, edit: RemoveStep) -> None:
    name = edit.step_id
    draft.require(name)
    inside = draft.place_inside(name)
    if inside is not None:
        rows, index = inside
        if len(rows) == 1:
            raise Refused(f"'{name}' is the last step of its block; skip it instead", "PLAN_EMPTY")
        del rows[index]
        draft.removed.add(name)
        draft.inner.pop(name, None)
    else:
        draft.order.remove(name)
        draft.steps.pop(name, None)
    draft.changed.discard(name)
    draft.skipped.pop(name, None)
    draft.unskipped.pop(name, None)


def _move(draft: Draft, edit: MoveStep) -> None:
    draft.require(edit.step_id)
    if edit.step_id not in draft.order:
        raise Refused(f"'{edit.step_id}' is inside a block; set its dependsOn instead of moving it", "BAD_MOVE")
    if edit.after == edit.step_id:
        raise Refused(f"step '{edit.step_id}' cannot come after itself", "BAD_MOVE")
    draft.order.remove(edit.step_id)
    draft.order.insert(draft.place(edit.after), edit.step_id)
    needs = {step.id: set(dependencies(step)) for step in draft.plan(1).steps}
    at = draft.order.index(edit.step_id)
    late = next((name for name in draft.order[at + 1 :] if name in needs[edit.step_id]), None)
    if late:
        raise Refused(f"step '{edit.step_id}' cannot come before '{late}', which it depends on", "BAD_MOVE")
    early = next((name for name in draft.order[:at] if edit.step_id in needs[name]), None)
    if early:
        raise Refused(f"step '{edit.step_id}' cannot come after '{early}', which depends on it", "BAD_MOVE")


def _skip(draft: Draft, edit: SkipStep) -> None:
    draft.require(edit.step_id)
    if edit.step_id not in draft.order and not is_inner(draft.run, edit.step_id):
        text = f"'{edit.step_id}' stands for all items; skip it in single items that have started, or set its `when`"
        raise Refused(text, "TOO_EARLY")
    if _is_skipped(draft, edit.step_id):
        raise Refused(f"step '{edit.step_id}' is already skipped", "ALREADY_DECIDED")
    draft.unskipped.pop(edit.step_id, None)
    draft.skipped[edit.step_id] = edit.reason or "skipped by a reviewer"


def _unskip(draft: Draft, edit: UnskipStep) -> None:
    draft.require(edit.step_id)
    if not _is_skipped(draft, edit.step_id):
        raise Refused(f"step '{edit.step_id}' is not skipped", "NOT_SKIPPED")
    _reopen(draft, edit.step_id)


def _reopen(draft: Draft, name: str) -> None:
    """Undo the skip of a step. Raises Refused if a step that depends on it has begun."""
    run = draft.run
    local = run.outline.inner_name(name) if name in run.outline else name
    users = [node.id for node in siblings(run, name) if local in dependencies(node.step)]
    late = next((user for user in users if has_begun(run, user)), None)
    if late:
        raise Refused(f"step '{late}', which depends on '{name}', has started without it", "TOO_LATE")
    if name in draft.skipped:
        del draft.skipped[name]
    else:
        draft.unskipped[name] = None


_APPLY: Mapping[type, Any] = {
    SetField: _set, AddStep: _add, RemoveStep: _remove, MoveStep: _move, SkipStep: _skip, UnskipStep: _unskip
}  # fmt: skip


def _is_skipped(draft: Draft, name: str) -> bool:
    state = draft.run.steps.get(name)
    was = state is not None and state.status is Status.SKIPPED and name not in draft.unskipped
    return was or name in draft.skipped


def _op(edit: Edit) -> str:
    if isinstance(edit, AddStep):
        return f"add {edit.step.get('id')}"
    where = f" {edit.step_id}" if edit.step_id else ""
    return f"{edit.op}{where}{f' {edit.path}' if isinstance(edit, SetField) else ''}"
