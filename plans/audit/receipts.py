"""What became of the signals to a plan: counted and refused by the workflow, matched with history by the audit record.

A signal has no answer, so the workflow numbers those that each of its runs handles, in the order of history, and keeps
the refusals: what is not refused was accepted. The Run carries them to continue-as-new and into the record of the end,
where history has them; the next run counts from 0. Sentences that may quote what somebody sent are left out.

Rejected: the outcome in the signal's own entry (the heads of a running plan's record would change), a marker or memo
per signal (a command each), the plan's log (200 entries, and no tie to an event).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from pydantic import Field, ValidationError

from plansurvive.plans.audit.entries import Act, short
from plansurvive.plans.model import Value

KEPT = 100
"""Refusals, and decisions that became void, that a run of the workflow keeps; the oldest is dropped first."""
UNCOUNTED = frozenset(("agent_progress", "budget_answer", "place", "place_report"))
"""Signals between the workflows of one plan."""
SAID = frozenset((
    "ALREADY_DECIDED", "BAD_SIGNATURE", "CLOSING", "DIGEST_REQUIRED", "IS_A_QUESTION", "MESSAGE_TOO_LARGE",
    "NONE_AWAITS", "NOT_A_QUESTION", "NOT_CLOSING", "NOT_IN_REVIEW", "NOT_PAUSED", "NOT_RUNNING", "PLAN_CLOSED",
    "REPLAYED", "RESET", "STALE_DIGEST", "STALE_VERSION", "TOO_EARLY", "TOO_LATE", "UNKNOWN_SIGNAL", "UNKNOWN_STEP",
    "UNSIGNED", "VOID",
))  # fmt: skip
"""Codes whose sentences name steps, people, versions and statuses only."""
DECIDES = frozenset(("approve", "deny", "answer"))


class Refusal(Value):
    """A signal that was refused."""

    number: int = Field(ge=1, description="Of the signal, in its run of the workflow.")
    code: str = Field(max_length=200)
    text: str = Field(default="", max_length=200)


class Voided(Value):
    """A decision or answer that was accepted, and counts no more: it was about another call, or not signed."""

    after: int = Field(ge=0, description="Number of the last signal before.")
    step_id: str = Field(default="", max_length=1_000)
    code: str = Field(max_length=200)
    text: str = Field(default="", max_length=200)


class Receipts(Value, frozen=False):
    """Of one run of the workflow."""

    count: int = Field(default=0, ge=0, description="Signals handled.")
    dropped: int = Field(default=0, ge=0, description="Number of the last refusal that was dropped.")
    refused: list[Refusal] = Field(default_factory=list, max_length=KEPT)
    voided: list[Voided] = Field(default_factory=list, max_length=KEPT)

    def arrived(self, name: str) -> None:
        """Count a signal that is being handled."""
        self.count += name not in UNCOUNTED

    def refuse(self, name: str, code: str, text: str) -> None:
        """Note that the signal counted last is refused."""
        if name in UNCOUNTED:
            return
        self.refused.append(Refusal(number=self.count, code=short(code), text=_said(code, text)))
        if len(self.refused) > KEPT:
            self.dropped = self.refused.pop(0).number

    def void(self, step_id: str | None, code: str, text: str) -> None:
        """Note that a decision counts no more."""
        found = Voided(after=self.count, step_id=short(step_id, 1_000), code=short(code), text=_said(code, text))
        self.voided.append(found)
        del self.voided[:-KEPT]


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


def _said(code: str, text: str) -> str:
    return short(text) if code in SAID else ""
