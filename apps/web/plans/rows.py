"""What a row of the list of steps says, from the brief view: the same words as the live board in a terminal."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime

from plansurvive.client.runs import BriefView, LiveView
from plansurvive.plans.run import Status
from plansurvive.plans.step_state import ASKING
from plansurvive.plans.views.models import BriefStep
from plansurvive.plans.views.steps.row import Row, live_row

ON_A_PAGE = 200
"""Rows of one page of a big plan."""


@dataclass(frozen=True)
class Listed:
    """One step in a list."""

    step: BriefStep
    row: Row

    @property
    def key(self) -> str:
        """Names it in the page: a step id may hold any character."""
        return key_of(self.step.id)

    @property
    def asks(self) -> bool:
        """Whether a person has to decide or answer."""
        return self.step.awaiting in ASKING

    @property
    def remark(self) -> str:
        """How long it took, the attempt, its error code; of one that runs, nothing that is old in a second."""
        row = self.row
        if row.sign == "running":
            return " · ".join(filter(None, (row.tasks, row.attempt)))
        return " · ".join(filter(None, (row.code, row.took, "from an earlier run" if row.taken_from else "")))

    @property
    def instances(self) -> list[Listed]:
        """A few of the steps inside it."""
        return [listed(each) for each in self.step.instances]


def listed(step: BriefStep, live: LiveView | None = None) -> Listed:
    """A step as the page lists it. `live`: what is known of its running attempt."""
    step = step.model_copy(update={"live": live}) if live is not None and step.status is Status.RUNNING else step
    return Listed(step, live_row(step, datetime.now(UTC)))


def key_of(step_id: str) -> str:
    """A name for the row of a step that HTML, CSS and addresses take as it is."""
    return "s" + hashlib.sha256(step_id.encode()).hexdigest()[:12]


def done_of(view: BriefView) -> int:
    """The number of steps that are done, for the progress of the plan."""
    return sum(view.counts.get(status, 0) for status in ("completed", "skipped"))
