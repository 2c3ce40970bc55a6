"""What became of the signals to a plan, as entries: the receipts of its workflow, matched with its history."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from pydantic import ValidationError

from plansurvive.features.audit.entries import Act, short
from plansurvive.plans.receipts import Receipts, Refusal, Voided

DECIDES = frozenset(("approve", "override", "deny", "answer"))


class Sent(NamedTuple):
    """A signal in history."""

    entry: int
    """Number of its entry; 0: the record does not list it."""
    action: str
    step_id: str


def read(found: Any) -> Receipts | None:
    """The receipts in data that a workflow wrote; None if there are none."""
    try:
        return Receipts.model_validate(found) if isinstance(found, dict) else None
    except ValidationError:
        return None


def outcomes(receipts: Receipts, sent: Sequence[Sent], time: datetime) -> list[Act]:
    """What became of the signals of one run of the workflow, as entries. `sent`: its signals, in order.

    Nothing is said of signals that the receipts know nothing of: older ones than the refusals that were kept.
    """
    refused = {each.number: each for each in receipts.refused}
    found = list[Act]()
    for number, signal in enumerate(sent[: receipts.count], 1):
        if not signal.entry or (number <= receipts.dropped and number not in refused):
            continue
        why = refused.get(number)
        found.append(_became(signal, time, "refused" if why else "accepted", why))
    return found + _voided(receipts, sent, time)


def closed(receipts: Receipts, sent: Sequence[Sent], time: datetime) -> list[Act]:
    """What became of signals that came after the record of the plan's end was begun: a plan that has ended takes none.

    `sent`: all signals of the last run of the workflow.
    """
    why = Refusal(number=1, code="PLAN_CLOSED", text="the plan has ended")
    return [_became(signal, time, "refused", why) for signal in sent[receipts.count :] if signal.entry]


def _voided(receipts: Receipts, sent: Sequence[Sent], time: datetime) -> list[Act]:
    """The decisions that became void: each is that of the last signal about the step, if one was accepted."""
    refused, found, taken = {each.number for each in receipts.refused}, list[Act](), set[int]()
    for each in receipts.voided:
        numbers = [
            number for number, signal in enumerate(sent[: each.after], 1)
            if number not in refused | taken and number > receipts.dropped
            and signal.action in DECIDES and signal.step_id == each.step_id
        ]  # fmt: skip
        taken.update(numbers[-1:])
        signal = sent[numbers[-1] - 1] if numbers else Sent(0, "decision", each.step_id)
        found.append(_became(signal, time, "void", each))
    return found


def _became(signal: Sent, time: datetime, outcome: str, why: Refusal | Voided | None) -> Act:
    return Act(
        time=time, action=short(f"{signal.action} ended"), step_id=signal.step_id, outcome=outcome,
        entry=signal.entry or None, code=why.code if why else "", text=why.text if why else "",
    )  # fmt: skip
