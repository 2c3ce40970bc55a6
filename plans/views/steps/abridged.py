"""Chooses which steps of a big plan to show when there is no room for all.

Priority: awaiting a decision, running, failed, ready, most recently finished, the rest. The chosen steps are shown in
the plan's order; the others are counted on one line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime

from plansurvive.plans.views.models import BriefStep

Rank = tuple[int, float]
"""Sort key of that priority; the lowest is chosen first."""
_WEIGHTS = {"running": 1, "failed": 2, "ready": 3, "completed": 4, "skipped": 4}


def rank(status: str, asks: bool, ended: datetime | None) -> Rank:
    """The priority of a step. `asks`: it awaits a decision."""
    return 0 if asks else _WEIGHTS.get(status, 5), -ended.timestamp() if ended else 0.0


def foremost(ranks: Sequence[Rank], room: int) -> list[int]:
    """Indexes of the steps to show, in the plan's order: all if they fit, otherwise `room` - 1."""
    if len(ranks) <= room:
        return list(range(len(ranks)))
    return sorted(sorted(range(len(ranks)), key=ranks.__getitem__)[: max(0, room - 1)])


def chosen(steps: Sequence[BriefStep], room: int) -> list[int]:
    """`foremost` for the steps of a brief view."""
    return foremost([_rank_of(step) for step in steps], room)


def folded(statuses: Iterable[str]) -> str:
    """One line that counts the other steps: `… and 9,800 completed, 3 blocked`."""
    return "… and " + ", ".join(f"{count:,} {status}" for status, count in Counter(statuses).most_common())


def _rank_of(step: BriefStep) -> Rank:
    return rank(step.status, bool(step.awaiting), step.ended_at)
