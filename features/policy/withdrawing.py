"""Taking a decision back, until a call uses it. Pure.

A person takes back what they have decided themselves: the name is the same, and so is the key, if the decision has been
signed. An approval that others had joined ends the decision of all: theirs are kept, and the step awaits another one.
What the approver had remembered with it is forgotten.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from plansurvive.features.policy.messages import Withdraw
from plansurvive.features.policy.model import Consents, Decided
from plansurvive.plans.errors import Refused
from plansurvive.plans.execution import remembered
from plansurvive.plans.flow.ids import is_pattern
from plansurvive.plans.log import LogKind
from plansurvive.plans.model import Step
from plansurvive.plans.model.identities import identity
from plansurvive.plans.run import DONE, Decision, Run, Status
from plansurvive.plans.run.people import who_of
from plansurvive.plans.run.unknown_step import unknown_step
from plansurvive.plans.signature import signer_of
from plansurvive.plans.step_state import StepState

WITHDRAWN = "WITHDRAWN"


class Mine(NamedTuple):
    """What a person has decided about a step."""

    step: Step
    votes: list[Decided]
    """Their approvals among those that are collected."""
    decision: Decision | None
    """The decision that ends with them; None: it awaits others still."""


def mine(run: Run, message: Withdraw) -> Mine:
    """What would be taken back. Raises Refused if there is nothing, or a call has used it."""
    if is_pattern(message.step_id):
        raise Refused("a decision is withdrawn for one step at a time; name the item, not a pattern", "BAD_MESSAGE")
    step = run.step_of(message.step_id)
    if step is None:
        raise unknown_step(message.step_id, run)
    consents, state = run.known_part(Consents), run.steps[step.id]
    known = run.decisions.get(step.id)
    if known is not None and known.source == "timeout":
        known = None
    decision = known
    asked = consents.steps.get(step.id) if consents is not None else None
    collected = asked.decided if asked is not None else []
    votes = [each for each in collected if _is_by(message, each)]
    if decision is not None:
        # The last one of several has completed it: it stands only with all of them.
        is_part = decision.approved and any(each.digest == decision.digest for each in votes)
        decision = decision if is_part or _is_by(message, decision) else None
    if decision is None and not votes:
        raise Refused(*_nothing(step, message, [*collected, *([known] if known is not None else [])]))
    is_running = state.status is Status.RUNNING and not state.awaiting
    if is_running or state.permanently_blocked or state.status in DONE:
        what = "the approval" if decision is None or decision.approved else "the denial"
        text = f"{what} of step '{step.id}' was used: the step is {_standing(state)}"
        raise Refused(f"{text}; what has begun is stopped with `plan cancel` or `plan interrupt`", "TOO_LATE")
    return Mine(step, votes, decision)


def withdraw(run: Run, message: Withdraw, now: datetime) -> str:
    """Take it back; returns the sentence about it. Raises Refused, with the run unchanged."""
    step, votes, decision = mine(run, message)
    if votes:
        consents = run.part(Consents)
        asked = consents.steps[step.id]
        left = [each for each in asked.decided if each not in votes]
        consents.steps[step.id] = asked.model_copy(update={"decided": left})
    if decision is not None:
        del run.decisions[step.id]
        remembered.forget(run, step, decision)
    what = "denial" if decision is not None and not decision.approved else "approval"
    who = f" by {who_of(run, message)}" if message.by else ""
    why = f": {message.comment}" if message.comment else ""
    text = f"the {what} of step '{step.id}' was withdrawn{who}{why}; it needs another decision"
    run.note(LogKind.VOID, text, now, step.id, code=WITHDRAWN)
    return text


def _is_by(message: Withdraw, decided: Decided | Decision) -> bool:
    """Whether the message is by who has decided. What a key has signed, the same key takes back."""
    is_same = identity(message.by) == identity(decided.by)
    return is_same and decided.signed in ("", signer_of(message))


def _nothing(step: Step, message: Withdraw, others: list[Decided | Decision]) -> tuple[str, str]:
    """Why there is nothing to take back, and the code."""
    if any(identity(message.by) == identity(each.by) for each in others):
        way = "withdraw it with that key, or on that page"
        return f"the decision of {message.by} about step '{step.id}' was signed; {way}", "UNVERIFIED"
    names = list(dict.fromkeys(each.by or "somebody without a name" for each in others))
    has = f"; {', '.join(names[:10])} {'has' if len(names) == 1 else 'have'}" if names else ""
    return f"{message.by or 'the sender'} has decided nothing about step '{step.id}'{has}", "NOT_DECIDED"


def _standing(state: StepState) -> str:
    is_blocked = state.permanently_blocked and state.status not in DONE
    return "permanently blocked" if is_blocked else state.status.value
