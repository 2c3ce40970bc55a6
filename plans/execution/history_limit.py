"""When a run of the workflow has grown enough to go on in a new one: two thresholds, decided from numbers alone.

Running activities cannot be carried over, so the change waits for a moment when none runs. Above the soft threshold
nothing more is started until that moment. A slow step must not hold up the others for its whole length: when the wait
lasts longer than PATIENCE, the others go on beside it, and the wait begins again when it has ended. Above the hard
threshold nothing starts any more, however long it takes: there the server's own limit is near (TEMPORAL.md 3).
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from enum import Enum

PATIENCE = timedelta(seconds=10)
"""How long the others wait for running steps to end."""
HARD_EVENTS = 20_000
HARD_BYTES = 20_000_000


class Move(Enum):
    """What the workflow may do now."""

    START = "start what is ready"
    HOLD = "start nothing, wait"
    CONTINUE = "go on in a new run"


class HistoryLimit:
    """Decides, turn by turn. `limit` replaces the server's suggestion and, tenfold, the hard threshold, for tests."""

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit
        self._hard = HARD_EVENTS if limit is None else 10 * limit
        self._slow: set[str] = set()
        self.until: datetime | None = None
        """End of the present wait, for which the caller sets a timer; None when there is none."""

    def decide(self, events: int, size: int, suggested: bool, flying: Collection[str], now: datetime) -> Move:
        """The move for this turn, given the history so far and the activities that run."""
        full = suggested if self._limit is None else suggested or events >= self._limit
        if not full:
            return Move.START
        if not flying:
            return Move.CONTINUE
        if events >= self._hard or size >= HARD_BYTES:
            return Move.HOLD
        self._slow.intersection_update(flying)
        if self._slow:
            return Move.START
        if self.until is None:
            self.until = now + PATIENCE
        if now < self.until:
            return Move.HOLD
        self._slow, self.until = set(flying), None
        return Move.START
