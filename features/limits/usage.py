"""What was used of one rate, and when it counts no more: a sliding window.

An attempt that is admitted at T begins within its margin, so it counts from T until a full window after T + margin: no
period of the window's length ever holds more beginnings than the rate's amount. Times are rounded up to a 600th of the
window, which bounds the length of the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from pydantic import BaseModel, ConfigDict, Field

SLICES = 600
FLOOR, CEILING = 50, 1_000
"""Milliseconds that are added for what a network does between a worker and the server that is called."""


class Usage(BaseModel):
    """The log of one window of a bucket. Times are milliseconds."""

    model_config = ConfigDict(extra="forbid")

    seconds: int
    times: list[int] = Field(default_factory=list, description="When an entry counts no more, ascending.")
    costs: list[int] = Field(default_factory=list)

    def drop(self, now: int) -> None:
        """Forget what counts no more."""
        kept = next((at for at, time in enumerate(self.times) if time > now), len(self.times))
        del self.times[:kept], self.costs[:kept]

    @property
    def total(self) -> int:
        """What counts."""
        return sum(self.costs)

    def ends(self, at: int, margin: float) -> int:
        """When what is admitted at `at` counts no more."""
        window = self.seconds * 1_000
        slice_ = max(1, window // SLICES)
        jitter = min(max(window // 200, FLOOR), CEILING)
        return ceil((at + window + jitter + ceil(margin * 1_000)) / slice_) * slice_

    def add(self, at: int, margin: float, cost: int) -> None:
        """Count something that is admitted at `at`."""
        end = self.ends(at, margin)
        place = len(self.times)
        while place and self.times[place - 1] > end:
            place -= 1
        if place and self.times[place - 1] == end:
            self.costs[place - 1] += cost
        else:
            self.times.insert(place, end)
            self.costs.insert(place, cost)

    def correct(self, at: int, margin: float, change: int) -> None:
        """Change what was admitted at `at` by so much; what counts no more needs no correction."""
        end = self.ends(at, margin)
        if end in self.times:
            place = self.times.index(end)
            self.costs[place] = max(0, self.costs[place] + change)

    def room_in(self, amount: int, needed: int, now: int) -> int:
        """Milliseconds until `needed` fits below `amount`, if nothing else is admitted before."""
        missing = needed - (amount - self.total)
        if missing <= 0:
            return 0
        for time, cost in zip(self.times, self.costs, strict=True):
            missing -= cost
            if missing <= 0:
                return time - now
        window = self.seconds * 1_000
        return _last(self.times, now) - now + window * ceil(missing / amount)


def _last(times: Sequence[int], now: int) -> int:
    return times[-1] if times else now
