"""Puts a revised plan into effect: the run continues with the new version.

Steps whose call has changed need approval again, and what an edit adds or changes has no waiver.
`plans.editing.apply_edits` decides whether edits may be applied, this module updates the run; the caller stops the
timers of steps that no longer wait.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from pydantic import Field

from plansurvive.plans.change_log import logged
from plansurvive.plans.definition.dependencies import dependencies
from plansurvive.plans.definition.scopes import walk
from plansurvive.plans.editing.apply_edits import Revised
from plansurvive.plans.editing.draft import has_begun
from plansurvive.plans.editing.inner_edits import effect_of, siblings
from plansurvive.plans.execution import approvals
from plansurvive.plans.execution.asking import void_answer
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.log import LogKind
from plansurvive.plans.model import Plan, Step, Value
from plansurvive.plans.model.step_fields import On, names
from plansurvive.plans.run import Run
from plansurvive.plans.run.undone import is_of_edited
from plansurvive.plans.step_state import named
from plansurvive.plans.text.lists import some

_DECIDED = names(Step, On.APPROVAL)
"""Fields of a step that a decision covers."""


class Edited(Value):
    """What the author of a change is told."""

    version: int
    """The plan's new version."""
    diff: list[str]
    """What changed, one line per change, for people."""
    warnings: list[str] = Field(default_factory=list)
    """What follows from it that may not be meant: steps that a skip blocks permanently."""


def put_into_effect(schedule: Schedule, revised: Revised, now: datetime) -> None:
    """Update the run to the revised plan: statuses, decisions, problems and change log."""
    run = schedule.run
    # 1. Outdated decisions are identified by the old plan, so before it is replaced.
    tops = {name.split(".")[0] for name in revised.changed} & run.steps.keys()
    # A block that has not begun asks as a whole, for what is inside it as well.
    unopened = {name for name in tops if not has_begun(run, name) and _asked_or_decided(run, name)}
    outdated_tops = outdated(run, revised.plan, revised.changed | unopened)
    inner = effect_of(run, revised.plan, revised.overrides, revised.drawn, lambda name: has_begun(run, name))
    changed_inner = list[str]()  # inside blocks and loops, and would make another call than before
    for name in [name for name in inner.changed if name in run.steps]:
        old, new = run.outline.step(name), inner.changed[name]
        if _call(old, run.args_of(old)) != _call(new, new.args):
            changed_inner.append(name)
    outdated_inner = [name for name in changed_inner if _asked_or_decided(run, name)]
    for name in [*outdated_tops, *outdated_inner]:
        approvals.void(run, name, now)
        void_answer(run, name, now)
    inside = sorted(revised.changed - {step.id for step in run.plan.steps})
    note_edited(run, revised.plan, [*outdated_tops, *outdated_inner, *inside], now)
    # 2. The new plan takes its place.
    run.pins.update(inner.pinned)
    run.overrides.update(revised.overrides)
    for name in sorted((revised.changed | set(changed_inner)) & run.steps.keys()):
        run.steps[name].args = None
    before = run.overrides and run.outline.nodes
    schedule.revise(revised.plan, revised.skipped, revised.unskipped, now)
    for name in [name for name in run.overrides if name in before and name not in run.steps]:
        del run.overrides[name]  # it was removed; another step may get its id
    # 3. `answered` needs the new plan.
    for name in [*outdated_tops, *outdated_inner]:
        schedule.answered(name)
    run.decisions = {name: decision for name, decision in run.decisions.items() if name in run.steps}
    run.problems, run.revisions = revised.problems, logged(run.revisions, revised.revision)
    what = ", ".join(revised.revision.ops)
    entry = revised.revision
    by = f" by {named(entry.by, entry.via, verified=entry.verified)}" if entry.by else ""
    run.note(LogKind.EDITED, f"version {run.plan.version}{by}: {what}", now)


def warnings_of(run: Run, revised: Revised) -> list[str]:
    """What edits put into effect lead to that their author may not expect: what a skip blocks, a void waiver."""
    found = []
    for name in revised.skipped:
        local, beside = run.outline.inner_name(name), siblings(run, name)
        users = [node.id for node in beside if node.id not in revised.skipped and uses_value(node.step, local)]
        if users:
            named = some(users, 5, "'{}'".format)
            verb = "uses" if len(users) == 1 else "use"
            found.append(f"{named} {verb} the value of '{name}', which is skipped: permanently blocked unless changed")
    steps = dict(walk(revised.plan))
    waiving = [name for name in sorted(revised.changed & steps.keys()) if steps[name].requires_approval is False]
    what = "`requiresApproval: false` does not count in an edit"
    found += [f"{what}: '{name}' asks if its tool needs approval" for name in waiving if is_of_edited(run, name)]
    return found


def answer_to(run: Run, revised: Revised) -> dict[str, Any]:
    """An `Edited` as data, once the edits are in effect."""
    found = Edited(version=revised.plan.version, diff=revised.revision.diff, warnings=warnings_of(run, revised))
    return found.model_dump(mode="json", exclude_defaults=True)


def uses_value(step: Step, name: str) -> bool:
    """Whether the step uses the value of another one, in its arguments or its condition."""
    return dependencies(step).get(name, False)


def outdated(run: Run, plan: Plan, changed: Iterable[str]) -> list[str]:
    """The changed steps whose call differs in the new plan: arguments, or a field marked `On.APPROVAL`."""
    old, new = {step.id: step for step in run.plan.steps}, {step.id: step for step in plan.steps}
    return [
        name
        for name in sorted(changed)
        if name in old and _call(old[name], run.args_of(old[name])) != _call(new[name], new[name].args)
    ]


def _asked_or_decided(run: Run, name: str) -> bool:
    """Whether a decision about the step was asked for or made."""
    return bool(run.steps[name].awaiting) or name in run.decisions


def _call(step: Step, args: dict[str, Any]) -> dict[str, Any]:
    """What a decision on the step covers."""
    return {name: getattr(step, name) for name in _DECIDED} | {"args": args}


def note_edited(run: Run, plan: Plan, again: Iterable[str], now: datetime) -> None:
    """Mark what an edit to `plan` adds, changes (`again`) and removes: it has no waiver, whatever it says."""
    if not run.plan.steps:
        return  # the first draft; an answer of the LLM has no waivers
    old, new = {step.id: step for step in run.plan.steps}, {step.id: step for step in plan.steps}
    marks = dict.fromkeys([*again, *(name for name in old if name not in new)], approvals.CALL)
    for name, step in new.items():
        if name not in marks and (name not in old or old[name].approval != step.approval):
            marks[name] = run.edited.get(name, approvals.RULE)
    if plan.defaults.approval != run.plan.defaults.approval:
        marks[approvals.DEFAULTS] = approvals.RULE
    run.edited |= marks
    waiving = [name for name in marks if name in new and new[name].requires_approval is False]
    if waiving:
        text = f"`requiresApproval: false` waives nothing in a step that was edited: {', '.join(waiving[:10])}"
        run.note(LogKind.WARNING, text, now)
