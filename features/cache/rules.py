"""Which calls may take the result of an earlier run: what a plan, a step, a tool and the start of the run say about it.

A step says it for itself, the plan for the steps that say nothing, a tool for those of plans that say nothing. Whoever
starts a run may say it for the plan (`plan run --since`), but not for a step that says `cache: false`.
"""

from __future__ import annotations

import re

from pydantic import ValidationError

from plansurvive.features.cache.language import refusal_of, rule_of
from plansurvive.features.cache.model import CacheChoice, CacheNote, CacheOrder
from plansurvive.plans.activity_io import Call, Return
from plansurvive.plans.child_ids import child_id
from plansurvive.plans.model import Plan, Step, ToolSpec
from plansurvive.plans.model.parts import Parted
from plansurvive.plans.run import Run
from plansurvive.plans.run.feature import Rules


def order_of(run: Run, step: Step) -> CacheOrder | None:
    """What is asked of the worker that makes the step's call; None: to call the tool, and keep nothing."""
    spec = run.facts.tools[step.tool]
    if not asked(run, step, spec) or refusal(run, step, spec):
        return None
    rule, choice = rule_of(step), run.options.part(CacheChoice)
    return CacheOrder(
        asked=True,
        title=run.plan.title,
        reads=rule.reads,
        outside=rule.outside,
        since=choice.since,
        fresh=choice.cache == "fresh",
    )


def asked(run: Run, step: Step, spec: ToolSpec) -> bool:
    """Whether the step's result may be taken or kept, as far as anybody asks for it."""
    if step.cache is not None:
        return step.cache is not False
    choice = run.options.part(CacheChoice)
    if choice.cache == "on" or choice.since:
        return True
    return spec.cache if run.plan.cache is None else run.plan.cache


def refusal(run: Run, step: Step, spec: ToolSpec) -> str:
    """Why the step's tool is always called, although it is asked otherwise; empty if it need not be."""
    if run.literal:
        return "an agent makes the call"
    if "#" in re.sub(r"\[[^\]]*\]", "", step.id):  # a key may have the character as well
        return "it is a round of a repetition, which is there to call the tool again"
    if run.steps[step.id].closes:
        return "it undoes or closes the plan"
    return refusal_of(step, spec)


def note_of(ended: Parted | None) -> CacheNote | None:
    """What a call, or a result, says about it; None if it says nothing, or anything else than our workers do."""
    if ended is None or CacheNote.feature not in ended.parts:
        return None
    try:
        return ended.part(CacheNote)
    except ValidationError:  # of an activity that was completed by hand
        return None


def _for_next(run: Run, rerun: bool) -> CacheChoice | None:  # noqa: ARG001
    """What is run again is run, whatever earlier runs have."""
    return CacheChoice(cache="fresh") if rerun else None


def _for_child(run: Run, step: Step, plan: Plan | None) -> CacheChoice | None:
    """The choice of the plan above. `since`: the first child of the same step in the run that it names.

    Of a child whose id is chosen that one is not known, and it is its own, whose results there are none of.
    """
    if plan is None:  # every call of an agent is made
        return None
    choice, own = run.options.part(CacheChoice), plan.id or ""
    if not choice.since:
        return choice if choice.cache else None
    is_chosen = own != child_id(run.plan.id or "", step.id, run.steps[step.id].calls)
    return choice.model_copy(update={"since": own if is_chosen else child_id(choice.since, step.id, 1)})


def _extend(run: Run, step: Step, call: Call) -> CacheOrder | None:  # noqa: ARG001
    return order_of(run, step)


def _settled(run: Run, step: Step, returned: Return) -> CacheNote | None:  # noqa: ARG001
    return note_of(returned)


RULES = Rules("cache", for_next=_for_next, for_child=_for_child, extend=_extend, settled=_settled)
