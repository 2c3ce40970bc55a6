"""What became of the signals to a plan: counted and refused by the workflow, for whoever reads its history.

A signal has no answer, so the workflow numbers those that each of its runs handles, in the order of history, and keeps
the refusals: what is not refused was accepted. Those between the workflows of one plan do not count
(`workflows.feature.Message.between`). The Run carries them to continue-as-new and into the record of the end,
where history has them; the next run counts from 0. Sentences that may quote what somebody sent are left out.

Rejected: the outcome in the signal's own entry (the heads of a running plan's record would change), a marker or memo
per signal (a command each), the plan's log (200 entries, and no tie to an event).
"""

from __future__ import annotations

from pydantic import Field

from plansurvive.plans.error_codes import PLAIN
from plansurvive.plans.model import Value

KEPT = 100
"""Refusals, and decisions that became void, that a run of the workflow keeps; the oldest is dropped first."""


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

    def arrived(self) -> None:
        """Count a signal that is being handled."""
        self.count += 1

    def refuse(self, code: str, text: str) -> None:
        """Note that the signal counted last is refused."""
        self.refused.append(Refusal(number=self.count, code=code[:200], text=_said(code, text)))
        if len(self.refused) > KEPT:
            self.dropped = self.refused.pop(0).number

    def void(self, step_id: str | None, code: str, text: str) -> None:
        """Note that a decision counts no more."""
        found = Voided(after=self.count, step_id=(step_id or "")[:1_000], code=code[:200], text=_said(code, text))
        self.voided.append(found)
        del self.voided[:-KEPT]


def _said(code: str, text: str) -> str:
    return text[:200] if code in PLAIN else ""
