"""Time spans as people write them in options and forms: `90s`, `30m`, `2h`, `7d`."""

from __future__ import annotations

import re
from datetime import timedelta

LONGEST = timedelta(days=365)
"""Of a plan's time limit."""
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def time_span(text: str) -> timedelta:
    """A text such as `30m`. Raises ValueError with what to write."""
    found = re.fullmatch(r"([0-9]{1,6})([smhd])", text)
    if not found:
        raise ValueError(f"{text[:100]!r} is not a duration; write 90s, 30m, 1h or 7d")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


def time_limit(text: str | None) -> float | None:
    """A plan's time limit such as `2h` in seconds, more than none and at most a year; None if there is none.

    Raises ValueError with what to write.
    """
    if not text:
        return None
    span = time_span(text)
    if not timedelta(0) < span <= LONGEST:
        raise ValueError(f"{text!r} is not between 1s and 365d")
    return span.total_seconds()
