"""Plain lines for a big plan: approvals, failures and overall progress instead of every step.

For a plan of 10,000 steps these are about twenty lines of progress plus failures and approvals, the same live and in
hindsight. A plan of up to `FULL` steps gets lines for every step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable

from plansurvive.client.cli.follow.lines import Lines
from plansurvive.client.live.feed import PROGRESS
from plansurvive.client.verbs.runs import BriefView, EventView
from plansurvive.plans.views.models.card import Card

FULL = 300
"""Up to this many steps, every step gets its lines."""
SHARES = 20
"""Number of progress lines over the whole plan."""
EACH = 30
"""How many failures, approvals and remarks are printed one by one; further ones are only counted."""


class Digest:
    """The lines of one plan's events, few enough to read."""

    def __init__(self, plan: str, view: BriefView) -> None:
        self._plan = plan
        self._lines = Lines(plan, view)
        self._total = _total(view)
        self._ended = _ended_before(view)
        self._printed: Counter[str] = Counter()

    @property
    def is_big(self) -> bool:
        """Whether the plan is too big for lines about every step."""
        return self._total > FULL

    def learn(self, view: BriefView) -> None:
        """Take over the steps of a newer view."""
        self._lines.learn(view)
        self._total = _total(view)

    def knows(self, event: EventView) -> bool:
        """Whether the event can be printed without a newer view."""
        if self.is_big:
            return self._printed["ready"] > EACH or self._lines.knows(event)
        return self._lines.knows(event) and not self._lines.opens(event)

    async def look(self, event: EventView, compared: Callable[[Card], Awaitable[Card]]) -> None:
        """Find out what is shown with the call that an event is about, if its lines will be printed."""
        item = self._lines.asked(event)
        if item is not None and not (self.is_big and self._printed["ready"] > EACH):
            self._lines.compared[item.digest] = await compared(item)

    def of(self, event: EventView) -> list[str]:
        """Lines to print for an event; for a big plan often none."""
        if not self.is_big or (event.logs and not event.step_id):
            return self._lines.of(event)
        if event.logs and event.logs[0].kind == PROGRESS:
            return []
        if event.logs or event.attempts or event.status in ("failed", "ready"):
            kind = "attempt" if event.attempts else "remark" if event.logs else event.status
            return self._some(kind, self._lines.of(event)) + self._progress(event)
        self._lines.take(event)
        return self._progress(event)

    def _some(self, kind: str, rows: list[str]) -> list[str]:
        if not rows:
            return []
        self._printed[kind] += 1
        if self._printed[kind] == EACH + 1:
            return [f"          … more like this are not listed; see all: plan show {self._plan} --full"]
        return rows if self._printed[kind] <= EACH else []

    def _progress(self, event: EventView) -> list[str]:
        if event.logs or event.status not in ("completed", "failed", "skipped"):
            return []
        self._total = max(self._total, self._ended.total() + 1)  # more steps than were known to come
        before = self._ended.total() * SHARES // self._total
        self._ended[event.status] += 1
        done = self._ended.total()
        if done * SHARES // self._total == before:
            return []
        counts = ", ".join(f"{count:,} {status}" for status, count in self._ended.items())
        return [f"{self._lines.clock(event)}    {done:,} of {self._total:,} steps: {counts}"]


def _total(view: BriefView) -> int:
    """The number of steps, those inside others included, as far as it is known."""
    return len(view.steps) + view.inside.get("total", 0)


def _ended_before(view: BriefView) -> Counter[str]:
    """The steps inside others that have ended and are not in the view one by one."""
    listed = Counter(each.status.value for step in view.steps for each in step.instances)
    return Counter(
        {
            word: number
            for word in ("completed", "failed", "skipped")
            if (number := view.inside.get(word, 0) - listed[word]) > 0
        }
    )
