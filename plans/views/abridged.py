"""Which steps of a big plan are shown when not all of them can be: those that move.

First those that wait for a person, then running, failed, ready ones, then what was done last, then the rest. They keep
the plan's order, and the others are told in one line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime

from plans.views.models import BriefStep

Rank = tuple[int, float]
"""A step's place in that order; the lower is shown first."""
_WEIGHTS = {"running": 1, "failed": 2, "ready": 3, "completed": 4, "skipped": 4}


def rank(status: str, asks: bool, ended: datetime | None) -> Rank:
    """Those that ended last come first; the others in their order."""
    return 0 if asks else _WEIGHTS.get(status, 5), -ended.timestamp() if ended else 0.0


def foremost(ranks: Sequence[Rank], room: int) -> list[int]:
    """The indexes of the steps to show, in the plan's order: all if they fit, else one less than there is room for."""
    if len(ranks) <= room:
        return list(range(len(ranks)))
    return sorted(sorted(range(len(ranks)), key=ranks.__getitem__)[: max(0, room - 1)])


def chosen(steps: Sequence[BriefStep], room: int) -> list[int]:
    """The same of steps as a view shows them."""
    return foremost([_rank_of(step) for step in steps], room)


def folded(statuses: Iterable[str]) -> str:
    """The others on one line: `… and 9,800 completed, 3 blocked`."""
    return "… and " + ", ".join(f"{count:,} {status}" for status, count in Counter(statuses).most_common())


def _rank_of(step: BriefStep) -> Rank:
    return rank(step.status, bool(step.awaiting), step.ended_at)
