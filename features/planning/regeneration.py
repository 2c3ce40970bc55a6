"""Replaces the plan of a run, which may have begun, with one that the LLM revised.

Steps that have begun are never changed: `fitted` restores those that the answer omits, and reports those it would
change. Fields of a step that an answer does not set (queue, retry, timeout, ...) retain what people set, as long as
the step retains its id and tool. `replaced` returns the result as `plans.editing.apply_edits` does; neither changes
the run.

Nothing starts while the LLM revises, so that its answer is about the plan as it is. Rejected: letting steps start; the
answer would be outdated or refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from plansurvive.features.planning.messages import Regenerate
from plansurvive.plans.change_log import Revision, differences
from plansurvive.plans.definition.dependencies import dependencies
from plansurvive.plans.definition.scopes import bodies, with_bodies
from plansurvive.plans.editing.apply_edits import Revised
from plansurvive.plans.editing.draft import has_begun
from plansurvive.plans.model import Plan, Step
from plansurvive.plans.model.step_fields import Asked, Llm, Offered, names, use_of
from plansurvive.plans.run import Run, as_it_stands
from plansurvive.plans.run.people import is_verified
from plansurvive.plans.signature import signer_of

_ANSWERED = names(Step, Asked) + tuple(
    name for name in names(Step, Offered) if isinstance(field := use_of(Step, name).llm, Offered) and field.resets
)
"""Fields of a step that an answer sets, also by omitting them."""
_ONLY_PEOPLE = names(Step, Llm.NEVER)
"""Fields of a step that a revision never sets."""


def begun(run: Run) -> dict[str, Step]:
    """The steps that have begun and all their dependencies, by id, in plan order."""
    steps = {step.id: step for step in run.plan.steps}
    fixed = {name for name in steps if has_begun(run, name)}
    to_visit = sorted(fixed)
    while to_visit:
        more = [name for name in dependencies(steps[to_visit.pop()]) if name in steps and name not in fixed]
        fixed.update(more)
        to_visit += more
    return {name: step for name, step in steps.items() if name in fixed}


def fitted(run: Run, steps: Sequence[Step]) -> tuple[list[Step], list[str]]:
    """The revised steps, with those that have begun restored, and the problems of the answer."""
    fixed, present = begun(run), {step.id: step for step in as_it_stands(run).steps}
    answered = {step.id for step in steps}
    rows = [step for name, step in fixed.items() if name not in answered]
    rows += [fixed.get(step.id) or _merged(present.get(step.id), step) for step in steps]
    wrong = [
        f"step '{step.id}' is {run.steps[step.id].status} and cannot be changed; repeat it unchanged or omit it,"
        " and give new steps ids that are not used yet"
        for step in steps
        if step.id in fixed and (step.tool, step.args) != (present[step.id].tool, present[step.id].args)
    ]
    return rows, wrong


def replaced(run: Run, plan: Plan, message: Regenerate, now: datetime) -> Revised:
    """The plan as the next version of the run's plan, with its entry for the change log."""
    plan = plan.model_copy(update={"version": run.plan.version + 1})
    revision = Revision(
        version=plan.version,
        by=message.by or "llm",
        via=message.via,
        verified=is_verified(run, message),
        signed=signer_of(message),
        time=now,
        reason=message.feedback[:2_000],
        ops=["regenerate"],
        diff=differences(run.plan, plan),
        before=run.plan if run.plan.steps else None,
    )
    return Revised(plan, {}, [], {step.id for step in plan.steps} - begun(run).keys(), [], revision)


def _merged(old: Step | None, new: Step) -> Step:
    """The answered step; if it is still the same step, fields that only people set are retained."""
    if old is None or _kind(old) != _kind(new):
        reset = new.model_copy(update={name: Step.model_fields[name].default for name in _ONLY_PEOPLE})
        return with_bodies(reset, lambda _, step: _merged(None, step))
    known = {(body.part, step.id): step for body in bodies(old) for step in body.steps}
    new = with_bodies(new, lambda part, step: _merged(known.get((part, step.id)), step))
    asks = True if old.requires_approval else new.requires_approval
    answered = {
        name: getattr(new, name) for name in sorted({*_ANSWERED, *new.model_fields_set}.difference(_ONLY_PEOPLE))
    }
    return old.model_copy(update={**answered, "requires_approval": asks})


def _kind(step: Step) -> tuple[str, bool, bool]:
    """Its tool, or which sort of block it is: a step of another kind is another step."""
    return step.tool, step.steps is not None, step.switch is not None
