"""The plain lines of a big plan: what needs a person or went wrong, and how far it is; not every step.

Somebody who looks at a plan of 10,000 steps wants some twenty lines of progress, the failures, and the questions, be it
live or long after. A plan of up to `FULL` steps is told step by step.
"""

from __future__ import annotations

from collections import Counter

from client.cli.follow.lines import Lines
from client.runs import BriefView, EventView

FULL = 300
"""Steps of a plan that is told step by step."""
SHARES = 20
"""Lines about progress in the whole plan."""
EACH = 30
"""Failures and questions told singly; further ones are counted only."""


class Digest:
    """The lines of one plan's events, few enough to read."""

    def __init__(self, plan: str, view: BriefView) -> None:
        self._plan = plan
        self._lines = Lines(plan, view)
        self._total = len(view.steps)
        self._ended: Counter[str] = Counter()
        self._told: Counter[str] = Counter()

    @property
    def is_big(self) -> bool:
        """Whether not every step is told."""
        return self._total > FULL

    def learn(self, view: BriefView) -> None:
        """The steps there are now."""
        self._lines.learn(view)
        self._total = len(view.steps)

    def knows(self, event: EventView) -> bool:
        """Whether nothing must be learned before the event is told."""
        return self._lines.knows(event)

    def of(self, event: EventView) -> list[str]:
        """What to print for an event; of a big plan often nothing."""
        if not self.is_big or (event.logs and not event.step_id):
            return self._lines.of(event)
        if event.logs or event.status in ("failed", "ready"):
            return self._some("remark" if event.logs else event.status, self._lines.of(event)) + self._progress(event)
        self._lines.take(event)
        return self._progress(event)

    def _some(self, kind: str, rows: list[str]) -> list[str]:
        if not rows:
            return []
        self._told[kind] += 1
        if self._told[kind] == EACH + 1:
            return [f"          … further steps like that are not listed: plan show {self._plan}"]
        return rows if self._told[kind] <= EACH else []

    def _progress(self, event: EventView) -> list[str]:
        if event.logs or event.status not in ("completed", "failed", "skipped"):
            return []
        before = self._ended.total() * SHARES // self._total
        self._ended[event.status] += 1
        done = self._ended.total()
        if done * SHARES // self._total == before:
            return []
        counts = ", ".join(f"{count:,} {status}" for status, count in self._ended.items())
        return [f"{self._lines.clock(event)}    {done:,} of {self._total:,} steps: {counts}"]
