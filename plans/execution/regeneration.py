"""A plan that the LLM revised, put in place of the present one, which may have begun already.

What has begun stays as it is, whatever the answer says: its id, arguments, result. `fitted` puts it back where the
answer left it out, and names what the answer would have changed. Of a step that goes on under its id, what an answer
does not set (queue, retry, time limit, ...) stays as people set it. `replaced` says what becomes of the run, as
`plans.execution.apply_edits` does of edits; neither changes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from plans.change_log import Revision, differences
from plans.definition.dependencies import dependencies
from plans.edits import Regenerate
from plans.execution.apply_edits import Revised, has_begun
from plans.model import Plan, Step
from plans.run import Run

_ANSWERED = ("id", "tool", "args", "description", "depends_on", "requires_approval", "critical")
"""Fields of a step that an answer sets, also by leaving them out."""


def as_it_stands(run: Run) -> Plan:
    """The present plan, with the arguments that approvers put in."""
    steps = [step.model_copy(update={"args": run.args_of(step)}) for step in run.plan.steps]
    return run.plan.model_copy(update={"steps": steps})


def begun(run: Run) -> dict[str, Step]:
    """The steps that have begun, and those they depend on, by id in the order of the plan."""
    steps = {step.id: step for step in run.plan.steps}
    found = {name for name in steps if has_begun(run, name)}
    left = sorted(found)
    while left:
        fresh = [name for name in dependencies(steps[left.pop()]) if name in steps and name not in found]
        found.update(fresh)
        left += fresh
    return {name: step for name, step in steps.items() if name in found}


def fitted(run: Run, steps: Sequence[Step]) -> tuple[list[Step], list[str]]:
    """The steps of the revised plan with those that have begun, and what is wrong with the answer."""
    fixed, present = begun(run), {step.id: step for step in as_it_stands(run).steps}
    answered = {step.id for step in steps}
    rows = [step for name, step in fixed.items() if name not in answered]
    rows += [fixed.get(step.id) or _kept(present.get(step.id), step) for step in steps]
    wrong = [
        f"step '{step.id}' is {run.steps[step.id].status} and cannot be changed; repeat it as it is or leave it out,"
        " and give what is new an id not used yet"
        for step in steps
        if step.id in fixed and (step.tool, step.args) != (present[step.id].tool, present[step.id].args)
    ]
    return rows, wrong


def replaced(run: Run, plan: Plan, message: Regenerate, now: datetime) -> Revised:
    """The run with that plan as its next version."""
    plan = plan.model_copy(update={"version": run.plan.version + 1})
    revision = Revision(
        version=plan.version,
        by=message.by or "llm",
        time=now,
        reason=message.feedback[:2_000],
        ops=["regenerate"],
        diff=differences(run.plan, plan),
        before=run.plan if run.plan.steps else None,
    )
    return Revised(plan, {}, [], {step.id for step in plan.steps} - begun(run).keys(), [], revision)


def _kept(old: Step | None, new: Step) -> Step:
    """A step as it was answered; what only people set stays where it is the same step still."""
    if old is None or old.tool != new.tool:
        return new.model_copy(update={"queue": None})
    asks = True if old.requires_approval else new.requires_approval
    answered = {name: getattr(new, name) for name in sorted({*_ANSWERED, *new.model_fields_set} - {"queue"})}
    return old.model_copy(update={**answered, "requires_approval": asks})
