"""Applies edits to steps that have not begun. The edits of one message are applied together, or not at all.

`revise` changes nothing: it returns a Revised, which `plans.execution.revision` puts into effect, or raises. Edits are
allowed in review and, for steps that have not begun, while the plan runs or is paused. The edited plan is validated as
a whole; the problems a draft already has may be fixed one by one, but an edit may not add a new one.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from plans.change_log import Revision, differences
from plans.definition.dependencies import dependencies
from plans.definition.parsing import read_plan
from plans.definition.scopes import outermost, queues, walk
from plans.definition.validation import condition_problems, errors, problems
from plans.edits import AddStep, Edit, EditPlan, MoveStep, RemoveStep, SetField, SkipStep, UnskipStep
from plans.errors import InvalidPlan, Refused, UnknownQueue
from plans.execution.schedule import SKIPPED
from plans.expressions.json_path import PathError, put
from plans.model import Plan, Problem, Step
from plans.model.step_fields import On, aliases
from plans.run import ENDED, PlanStatus, Run, Status

STEP_FIELDS = frozenset(aliases(Step, On.EDIT))
PLAN_FIELDS = frozenset(("title", "maxParallel", "defaults", "budget", "estimatedDuration"))


class Revised(NamedTuple):
    """The result of edits: the new plan, the steps whose skip changes, and the entry for the change log."""

    plan: Plan
    skipped: dict[str, str]
    unskipped: list[str]
    changed: set[str]
    problems: list[Problem]
    revision: Revision


def check_version(run: Run, expected: int | None) -> None:
    """Raises Refused STALE_VERSION, listing the changes since, if the plan is not at the expected version."""
    if expected is None or expected == run.plan.version:
        return
    since = [f"version {each.version}{_by(each.by)}: {'; '.join(each.diff[:5])}" for each in run.revisions]
    news = [text for each, text in zip(run.revisions, since, strict=True) if each.version > expected]
    shown = "".join(f"\n- {text}"[:1_000] for text in news[-5:])
    raise Refused(
        f"the plan is at version {run.plan.version}, not {expected}; review the changes and try again{shown}",
        "STALE_VERSION",
    )


def revise(run: Run, message: EditPlan, now: datetime, recovering: str | None = None) -> Revised:
    """Apply the edits; `run` itself is not changed. Raises Refused, or InvalidPlan with all new problems.

    `recovering` names the failed step of a recovery, the only step that may be edited after an attempt.
    """
    check_version(run, message.expect_version)
    check_open(run)
    draft = _Draft.of(run, recovering)
    for edit in message.edits:
        _APPLY[type(edit)](draft, edit)
    plan = draft.plan(run.plan.version + 1)
    unreadable = condition_problems(plan)
    if unreadable:
        raise InvalidPlan(unreadable)
    _check_queues(run, plan)
    remaining = errors(problems(plan, run.facts.tools))
    new = [problem for problem in remaining if problem not in run.problems]
    if new:
        raise InvalidPlan(new)
    ops = [_op(edit) for edit in message.edits]
    marks = [f"{name}: skipped" for name in draft.skipped] + [f"{name}: not skipped" for name in draft.unskipped]
    revision = Revision(
        version=plan.version,
        by=message.by,
        time=now,
        reason=message.comment,
        ops=ops[:20],
        diff=[*differences(run.plan, plan), *marks],
    )
    return Revised(plan, draft.skipped, list(draft.unskipped), draft.changed, remaining, revision)


def has_begun(run: Run, step_id: str) -> bool:
    """Whether the step has been started, or skipped by the run; a skip by a reviewer does not count."""
    state = run.steps[step_id]
    if state.status is Status.SKIPPED:
        return state.result is None or state.result.code != SKIPPED
    return state.status not in (Status.PENDING, Status.BLOCKED, Status.READY) or state.failure is not None


@dataclass
class _Draft:
    """A plan being edited, as the data of a plan file."""

    run: Run
    head: dict[str, Any]
    steps: dict[str, dict[str, Any]]
    order: list[str]
    recovering: str | None
    skipped: dict[str, str] = field(default_factory=dict)
    unskipped: dict[str, None] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, run: Run, recovering: str | None) -> _Draft:
        """The present plan of the run."""
        plan = run.plan
        head = plan.model_dump(mode="json", exclude={"steps"}, exclude_none=True)
        return cls(run, head, {}, [step.id for step in plan.steps], recovering)

    def step(self, name: str) -> dict[str, Any]:
        """The step's data, which the caller may modify. Raises Refused if the step cannot be edited."""
        if name not in self.order:
            raise Refused(f"the plan has no step '{name}'; `plan show` lists its steps", "UNKNOWN_STEP")
        if name in self.run.steps and name != self.recovering and has_begun(self.run, name):
            status = self.run.steps[name].status
            raise Refused(f"step '{name}' is {status}: only steps that have not begun can be edited", "TOO_LATE")
        if name not in self.steps:
            step = next(step for step in self.run.plan.steps if step.id == name)
            self.steps[name] = _data(step.model_copy(update={"args": self.run.args_of(step)}))
        return self.steps[name]

    def place(self, after: str | None) -> int:
        """The index after the step `after`; 0 if that is None. Raises Refused for an unknown step."""
        if after is None:
            return 0
        if after not in self.order:
            raise Refused(f"the plan has no step '{after}'; `plan show` lists its steps", "UNKNOWN_STEP")
        return self.order.index(after) + 1

    def plan(self, version: int) -> Plan:
        """The edited plan. Raises InvalidPlan if it does not parse."""
        own = {step.id: step for step in self.run.plan.steps}
        rows = [self.steps.get(name) or _data(own[name]) for name in self.order]
        if not rows:
            raise Refused("a plan needs at least one step; cancel the plan instead", "PLAN_EMPTY")
        parsed = read_plan({**self.head, "steps": rows, "version": version})
        if isinstance(parsed, list):
            raise InvalidPlan(parsed)
        return parsed


def _set(draft: _Draft, edit: SetField) -> None:
    root = edit.path.split(".")[0].split("[")[0]
    allowed = PLAN_FIELDS if edit.step_id is None else STEP_FIELDS
    if root not in allowed:
        whose = "the plan" if edit.step_id is None else f"step '{edit.step_id}'"
        text = f"'{root}' of {whose} cannot be set; set one of {', '.join(sorted(allowed))}"
        raise Refused(text, "UNKNOWN_FIELD")
    data = draft.head if edit.step_id is None else draft.step(edit.step_id)
    try:
        put(data, edit.path, deepcopy(edit.value))
    except PathError as error:
        raise Refused(f"{edit.path}: {error}", "UNKNOWN_FIELD") from None
    if edit.step_id is not None:
        draft.changed.add(edit.step_id)


def _add(draft: _Draft, edit: AddStep) -> None:
    name = edit.step.get("id")
    if not isinstance(name, str) or not name:
        raise Refused("the id of a step must be a non-empty string", "PLAN_SCHEMA")
    if name in draft.order:
        raise Refused(f"the id '{name}' is used by more than one step; give each its own", "PLAN_DUPLICATE_ID")
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


def _remove(draft: _Draft, edit: RemoveStep) -> None:
    draft.step(edit.step_id)
    draft.order.remove(edit.step_id)
    draft.steps.pop(edit.step_id)
    draft.changed.discard(edit.step_id)
    draft.skipped.pop(edit.step_id, None)
    draft.unskipped.pop(edit.step_id, None)


def _move(draft: _Draft, edit: MoveStep) -> None:
    draft.step(edit.step_id)
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


def _skip(draft: _Draft, edit: SkipStep) -> None:
    draft.step(edit.step_id)
    if _is_skipped(draft, edit.step_id):
        raise Refused(f"step '{edit.step_id}' is already skipped", "ALREADY_DECIDED")
    draft.unskipped.pop(edit.step_id, None)
    draft.skipped[edit.step_id] = edit.reason or "skipped by a reviewer"


def _unskip(draft: _Draft, edit: UnskipStep) -> None:
    draft.step(edit.step_id)
    if not _is_skipped(draft, edit.step_id):
        raise Refused(f"step '{edit.step_id}' is not skipped", "NOT_SKIPPED")
    _reopen(draft, edit.step_id)


def _reopen(draft: _Draft, name: str) -> None:
    """Undo the skip of a step. Raises Refused if a step that depends on it has begun."""
    late = next((step.id for step in draft.run.plan.steps if _uses(draft.run, step, name)), None)
    if late:
        raise Refused(f"step '{late}', which depends on '{name}', has begun without it", "TOO_LATE")
    if name in draft.skipped:
        del draft.skipped[name]
    else:
        draft.unskipped[name] = None


_APPLY: Mapping[type, Any] = {
    SetField: _set, AddStep: _add, RemoveStep: _remove, MoveStep: _move, SkipStep: _skip, UnskipStep: _unskip
}  # fmt: skip


def _is_skipped(draft: _Draft, name: str) -> bool:
    state = draft.run.steps.get(name)
    was = state is not None and state.status is Status.SKIPPED and name not in draft.unskipped
    return was or name in draft.skipped


def _uses(run: Run, step: Step, name: str) -> bool:
    return has_begun(run, step.id) and name in dependencies(step)


def check_open(run: Run) -> None:
    """Raises Refused if the plan cannot be edited: it is being drafted, or no further step will start."""
    if run.status in ENDED:
        raise Refused(f"the plan has ended ({run.status}); it cannot be edited", "PLAN_CLOSED")
    if run.status is PlanStatus.DRAFT:
        raise Refused("the plan is still being drafted; edit it once it is in review", "TOO_EARLY")
    if run.closing is not None:
        raise Refused("the plan is being closed; it cannot be edited", "PLAN_CLOSED")
    if run.stopped:
        raise Refused(f"no further step will start ({run.stopped}); the plan cannot be edited", "PLAN_CLOSED")


def newly_bound(old: Plan, new: Plan) -> list[str]:
    """The task queues of the new and changed steps that are bound to one."""
    before = {step.id: step for step in outermost(old)}
    return queues(step for step in outermost(new) if step != before.get(step.id))


def _check_queues(run: Run, new: Plan) -> None:
    """Raise UnknownQueue if a step is bound to a queue whose workers have not reported their tools and workspace."""
    known = {run.plan.queue, *queues(outermost(run.plan)), *run.facts.workspaces}
    for path, step in walk(new):
        if step.queue and step.queue not in known:
            raise UnknownQueue(path, step.queue)


def _data(step: Step) -> dict[str, Any]:
    data = step.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    return {"args": {}, **data}


def _op(edit: Edit) -> str:
    if isinstance(edit, AddStep):
        return f"add {edit.step.get('id')}"
    where = f" {edit.step_id}" if edit.step_id else ""
    return f"{edit.op}{where}{f' {edit.path}' if isinstance(edit, SetField) else ''}"


def _by(name: str) -> str:
    return f" by {name}" if name else ""
