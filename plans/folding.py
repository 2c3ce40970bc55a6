"""Which steps of a big plan are shown when not all of them can be: those that move.

First those that wait for a person, then running, failed, ready ones, then what was done last, then the rest. They keep
the plan's order, and the others are told in one line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

_WEIGHTS = {"running": 1, "failed": 2, "ready": 3, "completed": 4, "skipped": 4}


def chosen(steps: Sequence[Mapping[str, Any]], room: int) -> list[int]:
    """The indexes of the steps to show, in the plan's order: all if they fit, else one less than there is room for."""
    if len(steps) <= room:
        return list(range(len(steps)))
    by_weight = sorted(range(len(steps)), key=lambda index: (_weight(steps[index]), _recency(steps[index]), index))
    return sorted(by_weight[: max(0, room - 1)])


def folded(steps: Iterable[Mapping[str, Any]]) -> str:
    """The others on one line: `… and 9,800 completed, 3 blocked`."""
    counts = Counter(step["status"] for step in steps)
    return "… and " + ", ".join(f"{count:,} {status}" for status, count in counts.most_common())


def _weight(step: Mapping[str, Any]) -> int:
    return 0 if step.get("awaiting") else _WEIGHTS.get(step["status"], 5)


def _recency(step: Mapping[str, Any]) -> float:
    """Those that ended last come first; the others in their order."""
    ended = step.get("endedAt")
    return -datetime.fromisoformat(ended).timestamp() if ended else 0.0
