"""The consent to an undo that a person gives with the approval of its step (DESIGN 2.8).

It is given where the undo is one call in which nothing is known only once the step has run, no `{{value}}` above all:
that call is shown with the step's, and its digest is kept with the decision. The undo asks where it is another call
then, where it says `requiresApproval: true`, where decisions are signed, whose signatures are about the step's call
alone, and after an approval by time limit.
"""

from __future__ import annotations

from plansurvive.plans.definition.checks.will_ask import is_told
from plansurvive.plans.definition.scopes import UNDO
from plansurvive.plans.model import Step
from plansurvive.plans.run import Run
from plansurvive.plans.run.step_call import StepCall, digest_of, upcoming


def undo_call(run: Run, step: Step) -> StepCall | None:
    """The call that would undo a step, if its approval covers that; None if there is none, or the undo asks itself."""
    rule = step.undo
    if rule is None or rule.tool is None or not is_told(rule, run.facts.tools) or run.facts.must_sign:
        return None
    # Names in it mean what they mean in the step.
    call = {"tool": rule.tool, "args": rule.args, "steps": None, "switch": None}
    found = upcoming(run, step.model_copy(update=call), rule.args)
    return found.call if found.is_whole else None


def agreed(run: Run, step: Step) -> str:
    """What a decision about a step keeps of its undo: the digest that was shown, if the undo is still that call."""
    shown, call = run.steps[step.id].asked_undo, undo_call(run, step)
    return shown if call is not None and shown == digest_of(call) else ""


def is_agreed(run: Run, step: Step, call: StepCall) -> bool:
    """Whether a step is an undo, and a person has approved this call of it with the step that it undoes."""
    state = run.steps.get(step.id)  # a step inside a block that has not begun has none
    if state is None or state.closes != UNDO or step.tool in run.tools_changed or step.id in run.denied:
        return False
    decision = run.decisions.get(step.id.removesuffix(f".{UNDO}"))
    return decision is not None and decision.approved and decision.undo == digest_of(call)
