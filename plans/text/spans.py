"""Time spans in words."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType

SECONDS_OF: Mapping[str, int] = MappingProxyType({"s": 1, "m": 60, "h": 3_600, "d": 86_400})
"""The units in which people write time spans."""


def left(until: datetime, now: datetime) -> str:
    """How far away a time is: `in 9 min 56 s`."""
    seconds = (until - now).total_seconds()
    return f"in {in_words(seconds)}" if seconds > 0 else "now"


def in_words(seconds: float) -> str:
    """A time span as people say it: `45 s`, `9 min 56 s`, `2 h`, `3 d 4 h`."""
    for size, unit, part, small in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s")):
        if seconds >= 2 * size or seconds == size:
            number, rest = divmod(round(seconds / part), size // part)
            return f"{number} {unit}" + (f" {rest} {small}" if rest else "")
    return f"{seconds:.3g} s"
