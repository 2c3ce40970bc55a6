"""What a row of the list of steps says, from the brief view: the same words as the live board in a terminal."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime

from plansurvive.client.live.steps import percent
from plansurvive.client.runs import BriefView, LiveView
from plansurvive.client.web.words import duration
from plansurvive.plans.children.view import in_words
from plansurvive.plans.run import Status
from plansurvive.plans.views.live import attempt_text
from plansurvive.plans.views.models import BriefStep
from plansurvive.plans.views.nested.words import folded_line
from plansurvive.plans.views.pending import ASKING

ON_A_PAGE = 200
"""Rows of one page of a big plan."""


@dataclass(frozen=True)
class Row:
    """One row."""

    step: BriefStep
    key: str
    """Names the row in the page: a step id may hold any character."""
    status: str
    """The status, `waiting` for one that awaits something, `denied` apart from `skipped`."""
    word: str
    remark: str
    """How long it took, the attempt, its error code."""
    text: str
    """Its description; of a block or loop, what is inside; of a running one, its last line of progress."""
    error: str
    share: int | None
    """Progress in percent, if it is known."""
    child: str = ""
    """How the plan that it runs stands, in words, once that has started."""

    @property
    def asks(self) -> bool:
        """Whether a person has to decide or answer."""
        return self.step.awaiting in ASKING


def row(step: BriefStep, live: LiveView | None = None) -> Row:
    """The row of a step. `live`: what is known of its running attempt."""
    step = step.model_copy(update={"live": live}) if live is not None and step.status is Status.RUNNING else step
    now = datetime.now(UTC)
    status = "waiting" if step.awaiting else step.word
    word = f"awaiting {step.awaiting}" if step.awaiting else status
    if step.status is Status.BLOCKED and step.never:
        word = "permanently blocked"
    inside = folded_line("", step.inside).removeprefix(": ").strip() if step.inside else ""
    return Row(
        step, key_of(step.id), status, word, _remark(step, now),
        (step.live.line if step.live else "") or inside or step.description, step.error,
        percent(step, now) if step.status is Status.RUNNING else None, _child(step),
    )  # fmt: skip


def key_of(step_id: str) -> str:
    """A name for the row of a step that HTML, CSS and addresses take as it is."""
    return "s" + hashlib.sha256(step_id.encode()).hexdigest()[:12]


def done_of(view: BriefView) -> int:
    """The number of steps that are done, for the progress of the plan."""
    return sum(view.counts.get(status, 0) for status in ("completed", "skipped"))


def _remark(step: BriefStep, now: datetime) -> str:
    if step.status is Status.RUNNING and not step.awaiting:
        tasks = f"{sum(task.status == 'done' for task in step.tasks)}/{len(step.tasks)} tasks" if step.tasks else ""
        attempt = attempt_text(step.live, now) if step.live else ""
        return " · ".join(filter(None, (tasks, attempt)))
    if step.status is Status.COMPLETED and step.result:
        taken = " · from an earlier run" if step.result.cache and step.result.cache.taken_from else ""
        return duration(step.result.duration / 1000) + taken
    return (step.result.code or "") if step.status is Status.FAILED and step.result else ""


def _child(step: BriefStep) -> str:
    child = step.child
    return in_words(child.status, child.counts, len(child.pending) + child.more) if child else ""
