"""Words and marks for statuses and durations, the same as in the terminal."""

from __future__ import annotations

from plansurvive.plans.text.lengths import seconds as written
from plansurvive.plans.views.steps.row import MARKS

PLAN_MARKS = {
    "draft": "✎", "review": "?", "running": ">", "paused": "‖", "completed": "✓", "failed": "✗", "partial": "◐",
    "cancelled": "■", "interrupted": "■",
}  # fmt: skip
STEP_MARKS = {**MARKS, "ready": "·", "blocked": "·", "pending": "·"}


def status_mark(status: str) -> str:
    """The symbol of a plan's or step's status. Colour is never the only sign."""
    return STEP_MARKS.get(str(status)) or PLAN_MARKS.get(str(status), "·")


def status_word(status: str) -> str:
    """A status in words."""
    return str(status).replace("_", " ")


def duration(seconds: float | None) -> str:
    """A duration in seconds: 0.3 s, 12 s, 3:05, 1:02:03; a dash if there is none."""
    return "–" if seconds is None else written(seconds)
