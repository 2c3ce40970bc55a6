"""A step while its tool runs: the attempt, how long until the next one, and how far the tool says it is.

A workflow knows nothing of this: it sees an activity only when it has ended. The server knows, from the heartbeats of
the worker (`activities.attempt.heartbeat`), and clients read it there (`client.live`). Details of a heartbeat come from
a process that may be of another version; what is not readable in them is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from math import isfinite
from typing import Any

from pydantic import Field, ValidationError

from plansurvive.plans.activity_io import WORKER_LOST, Attempt
from plansurvive.plans.model import Value
from plansurvive.plans.text.spans import in_words
from plansurvive.plans.text.traces import folded

MAX_LINE = 200
"""Maximum length of a line of progress, as of `ToolContext.progress`."""
UNSERVED = 3.0
"""Seconds after which an attempt that is due and has not begun awaits a worker."""
MAX_ATTEMPTS = 1_000
"""Numbers above this are not shown."""


class LiveView(Value):
    """What is known of a running step, or of an LLM request, at this moment."""

    attempt: int = Field(default=1, description="Number of the attempt; only the tool's errors count.")
    of: int | None = Field(default=None, description="Attempts allowed.")
    next_at: datetime | None = Field(default=None, description="When the attempt begins, if it has not begun yet.")
    progress: int | None = Field(default=None, description="Percent, as the tool reports it.")
    line: str = Field(default="", description="The tool's last line of progress.")
    what: str = Field(
        default="", description="The step inside it, or the agent's call, that this is of; `line` begins with it."
    )
    limit: str = Field(default="", description="The limit that it waits for (limits.toml), until `next_at`.")
    attempts: list[Attempt] = Field(default_factory=list, description="The attempts before, oldest first.")
    more_attempts: int = Field(default=0, description="Number of attempts before those.")

    @property
    def is_plain(self) -> bool:
        """Whether there is nothing to tell but that it runs."""
        return (
            not (self.attempts or self.more_attempts or self.attempt > 1 or self.line or self.limit)
            and self.progress is None
        )


def live_of(details: Any, next_at: datetime | None = None) -> LiveView:
    """The state of an activity by its heartbeat details. `next_at`: when its next attempt begins, if it waits."""
    known: Mapping[str, Any] = details if isinstance(details, dict) else {}
    errors, line, limit = _count(known.get("errors")) or 0, known.get("line"), known.get("limit")
    return LiveView(
        attempt=errors + 1,
        of=_count(known.get("of")),
        next_at=next_at,
        progress=None if next_at else percent_of(known.get("progress")),
        line=line[:MAX_LINE] if isinstance(line, str) and not next_at else "",
        limit=limit[:MAX_LINE] if isinstance(limit, str) and next_at else "",
        attempts=attempts_of(known.get("attempts")),
        more_attempts=_count(known.get("moreAttempts")) or 0,
    )


def attempts_of(found: Any) -> list[Attempt]:
    """The attempts in heartbeat details, without those that this version cannot read."""
    readable = []
    for each in found[-MAX_ATTEMPTS:] if isinstance(found, list) else ():
        try:
            readable.append(Attempt.model_validate(each))
        except ValidationError:
            continue
    return readable


def percent_of(found: Any) -> int | None:
    """A number as a percentage from 0 to 100; None if it is not a number."""
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    if isinstance(found, float) and not isfinite(found):
        return None
    return int(min(max(found, 0), 100))


def attempt_text(live: LiveView, now: datetime) -> str:
    """Which attempt runs or is next: `attempt 2 of 3 in 1 s`; empty for a first attempt.

    Of one that waits for a limit: `waits for the limit of tools.http_request: 12 s`.
    """
    if live.limit and live.next_at is not None:
        wait = (live.next_at - now).total_seconds()
        left_text = "awaits a worker" if wait < -UNSERVED else in_words(round(max(0.0, wait)))
        return f"waits for the limit of {live.limit}: {left_text}"
    if live.attempt == 1 and not live.attempts:
        return ""
    number = numbered(live.attempt, live.of)
    if live.next_at is None:
        return number
    left = (live.next_at - now).total_seconds()
    return f"{number} awaits a worker" if left < -UNSERVED else f"{number} in {in_words(round(max(0.0, left)))}"


def told(live: LiveView, now: datetime) -> str:
    """All of an attempt inside a step (`what`) in one line: `deploy/upload: attempt 2 of 3 in 4 s: no connection`."""
    last = live.attempts[-1] if live.attempts else None
    error = folded(last.error or "") if last and live.next_at and not live.limit else ""
    share = "" if live.progress is None else f"{live.progress}%"
    said = error or live.line.removeprefix(live.what).removeprefix(": ")
    return ": ".join(filter(None, (live.what, attempt_text(live, now), share, said)))


def ended_text(attempt: Attempt, of: int | None) -> str:
    """One sentence on an attempt that gave no value, and when the next one begins."""
    number = numbered(attempt.number, of)
    if attempt.code == WORKER_LOST:
        return f"{number} was lost: {attempt.error}"
    wait = "" if attempt.delay is None else f"; next in {attempt.delay:.3g} s"
    return f"{number} failed: {attempt.code or 'TOOL_FAILED'} {folded(attempt.error)}{wait}"


def numbered(attempt: int, of: int | None) -> str:
    """`attempt 2 of 3`; without `of` if that is not known."""
    return f"attempt {attempt}" + (f" of {of}" if of else "")


def _count(found: Any) -> int | None:
    is_count = isinstance(found, int) and not isinstance(found, bool) and 0 <= found <= MAX_ATTEMPTS
    return found if is_count else None
