"""Decides when to continue-as-new: a soft and a hard limit on history length and size.

Activities in flight do not survive continue-as-new, so it waits until there are none. Above the soft limit no further
step starts until then. A slow step must not delay the others for its whole duration: after PATIENCE, the others start
again beside it, and the wait is repeated once it has finished. Above the hard limit nothing starts, however long that
takes: the server's own limit is near (TEMPORAL.md 3).

Continue-as-new writes the whole Run and reads it again, in proportion to its steps. So the history of a plan with many
steps may become longer than the server suggests: the loop of 10,000 items is carried four times instead of seven. A
plan that is cancelled while it rolls back or runs its `finally` ends in the run that was cancelled: Temporal forgets a
cancellation at continue-as-new, and would call the plan failed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from enum import Enum

PATIENCE = timedelta(seconds=10)
"""How long other steps wait for those in flight to finish."""
HARD_EVENTS = 20_000
"""Hard limit on the number of events in history."""
HARD_BYTES = 20_000_000
"""Hard limit on the size of history."""

EVENTS_PER_STEP = 2
"""Events that a history may have for each step of the Run, beyond what the server suggests."""
ROOM_EVENTS, ROOM_BYTES = 10_000, 8_000_000
"""Limits of that: the server warns at 10,240 events and 10 MB, and a replay takes two seconds."""


class Move(Enum):
    """What the workflow should do now."""

    START = "start ready steps"
    HOLD = "start nothing, wait"
    CONTINUE = "continue-as-new"


class HistoryLimit:
    """Decides at every turn of the workflow. `limit`, for tests, is a soft limit in events; the hard one is 10x."""

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit
        self._hard = HARD_EVENTS if limit is None else 10 * limit
        self._slow: set[str] = set()
        self.until: datetime | None = None
        """When the present wait ends, for which the caller sets a timer; None: not waiting."""

    def is_full(self, events: Callable[[], int], suggested: bool) -> bool:
        """Whether the soft limit is reached."""
        return suggested or (self._limit is not None and events() >= self._limit)

    def has_room(self, events: int, size: int, steps: int) -> bool:
        """Whether a Run of that many steps may wait with continue-as-new, although the server suggests it."""
        return self._limit is None and events < min(EVENTS_PER_STEP * steps, ROOM_EVENTS) and size < ROOM_BYTES

    def is_near_the_end(self, events: int, size: int) -> bool:
        """Whether the hard limit is reached."""
        return events >= self._hard or size >= HARD_BYTES

    def decide(self, events: int, size: int, full: bool, in_flight: Collection[str], now: datetime) -> Move:
        """The move for this turn, given the events and bytes of history and the steps in flight."""
        if not full:
            return Move.START
        if not in_flight:
            return Move.CONTINUE
        if self.is_near_the_end(events, size):
            return Move.HOLD
        self._slow.intersection_update(in_flight)
        if self._slow:
            return Move.START
        if self.until is None:
            self.until = now + PATIENCE
        if now < self.until:
            return Move.HOLD
        self._slow, self.until = set(in_flight), None
        return Move.START
