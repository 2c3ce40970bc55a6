"""The time of an in-process server, which can be skipped."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

_TICK = timedelta(microseconds=1)


class Timer:
    """Something that is due at a time."""

    def __init__(self, clock: Clock, due: datetime, then: Callable[[], None], is_skipped_to: bool) -> None:
        self.due, self.is_skipped_to = due, is_skipped_to
        self._clock, self._then = clock, then
        self._handle: asyncio.TimerHandle | None = None
        self.arm()

    def arm(self) -> None:
        """Wait for what remains."""
        if self._handle is not None:
            self._handle.cancel()
        left = max((self.due - self._clock.peek()).total_seconds(), 0.0)
        self._handle = asyncio.get_running_loop().call_later(left, self._fire)

    def cancel(self) -> None:
        """Never fire."""
        self._clock.timers.discard(self)
        if self._handle is not None:
            self._handle.cancel()

    def _fire(self) -> None:
        self.cancel()
        self._then()


class Clock:
    """Real time, and what has been skipped."""

    def __init__(self) -> None:
        self.timers = set[Timer]()
        self._skipped = timedelta()
        self._last = datetime.min.replace(tzinfo=UTC)

    def peek(self) -> datetime:
        """The time."""
        return datetime.now(UTC) + self._skipped

    def now(self) -> datetime:
        """The time, later than at any call before."""
        self._last = max(self.peek(), self._last + _TICK)
        return self._last

    def after(self, wait: timedelta, then: Callable[[], None], *, is_skipped_to: bool = True) -> Timer:
        """Call a function after some time. `is_skipped_to`: time may be skipped so that it is due."""
        timer = Timer(self, self.peek() + wait, then, is_skipped_to)
        self.timers.add(timer)
        return timer

    def skip(self) -> None:
        """Go to the next timer, if there is one to which time may be skipped."""
        due = min((each.due for each in self.timers if each.is_skipped_to), default=None)
        if due is not None and due > self.peek():
            self._skipped += due - self.peek()
            for each in list(self.timers):
                each.arm()

    def stop(self) -> None:
        """End all timers."""
        for each in list(self.timers):
            each.cancel()
