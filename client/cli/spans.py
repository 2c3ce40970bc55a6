"""Time spans as options of commands: `90s`, `30m`, `2h`, `7d`."""

from __future__ import annotations

import re
from datetime import timedelta

import typer

LONGEST = timedelta(days=365)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def duration(text: str, option: str) -> timedelta:
    """A text such as `30m` as a duration."""
    found = re.fullmatch(r"(\d{1,6})([smhd])", text)
    if not found:
        raise typer.BadParameter(f"{text!r} is not a duration; write 90s, 30m, 1h or 7d", param_hint=option)
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


def seconds_of(text: str | None, option: str) -> float | None:
    """A text such as `2h` in seconds, more than none and at most a year; None if there is none."""
    if text is None:
        return None
    span = duration(text, option)
    if not timedelta(0) < span <= LONGEST:
        raise typer.BadParameter(f"{text!r} is not between 1s and 365d", param_hint=option)
    return span.total_seconds()
