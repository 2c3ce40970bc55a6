"""Time spans as options of commands: `90s`, `30m`, `2h`, `7d`."""

from __future__ import annotations

from datetime import timedelta

import typer

from plansurvive.client.requests.time_spans import time_limit, time_span


def duration(text: str, option: str) -> timedelta:
    """A text such as `30m` as a duration."""
    try:
        return time_span(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


def seconds_of(text: str | None, option: str) -> float | None:
    """A text such as `2h` in seconds, more than none and at most a year; None if there is none."""
    try:
        return None if text is None else time_limit(text or " ")
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None
