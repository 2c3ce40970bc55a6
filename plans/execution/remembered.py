"""Approvals that hold for further calls (`remember`): of the same tool, or of the same step for all items of a loop.

What is remembered names the call's tool, network access, queue and workspace: a call that differs in one of them asks.
"""

from __future__ import annotations

from collections.abc import Callable

from plansurvive.plans.flow.ids import template_of
from plansurvive.plans.log import LogKind
from plansurvive.plans.model import Step
from plansurvive.plans.run import DONE, Decision, Run, Status
from plansurvive.plans.run.step_call import StepCall, upcoming

Stated = Callable[[Run, Step], bool | None]
"""The step's `requiresApproval`, as far as it counts (`approvals.stated`)."""


def by_item(run: Run, step: Step, call: StepCall) -> bool:
    """Whether this step was approved for all items of the loops around it. Then its author's wish was met once."""
    return _is_inside(step) and _item_kind(step, call) in run.remembered


def remember(run: Run, step: Step, call: StepCall, decision: Decision, stated: Stated) -> None:
    """Approve calls like this one for the rest of the run, those included that await approval already.

    Of a step inside a loop: the calls of that step for other items. Of any other step: all calls of its tool, except
    those of steps with their own `requiresApproval`: their author asked for that.
    """
    kind = _item_kind(step, call) if _is_inside(step) else call.kind
    if kind not in run.remembered or not _is_inside(step):
        run.remembered[kind] = decision.by
        run.note(LogKind.REMEMBERED, f"{kind} is approved for the rest of this run", decision.time, subject=kind)
    for name, state in run.steps.items():
        if state.awaiting != "approval":
            continue
        other = run.outline.step(name)
        if stated(run, other) is not None and not _is_inside(step):
            continue
        if state.proposal is not None:
            continue  # it asks about a recovery, not about a call
        seen = state.asked if state.asked is not None else run.args_of(other)
        theirs = upcoming(run, other).call._replace(args=seen)
        if (_item_kind(other, theirs) if _is_inside(step) else theirs.kind) == kind:
            own = {"args": None, "digest": state.digest, "remembered": True}
            run.decisions.setdefault(other.id, decision.model_copy(update=own))


def forget(run: Run, step: Step, decision: Decision) -> None:
    """Take back what an approval has let further calls do, which was withdrawn before its own call was made."""
    call = upcoming(run, step).call
    state = run.steps[step.id]
    call = call if state.asked is None else call._replace(args=state.asked)
    kind = _item_kind(step, call) if _is_inside(step) else call.kind
    if run.remembered.get(kind) == decision.by:
        del run.remembered[kind]
    for name in [name for name, each in run.decisions.items() if each.remembered]:
        theirs, is_used = run.decisions[name], run.steps[name].status in (Status.RUNNING, *DONE)
        if (theirs.by, theirs.time) == (decision.by, decision.time) and not is_used:
            del run.decisions[name]


def _is_inside(step: Step) -> bool:
    return template_of(step.id) != step.id


def _item_kind(step: Step, call: StepCall) -> str:
    """What is remembered for the items of a loop."""
    return f"step '{template_of(step.id)}' for every item: {call.kind}"
