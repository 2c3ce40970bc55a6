"""Turns the end of an activity into a step's outcome: one function per way to end."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import ValidationError
from temporalio.exceptions import ActivityError, ApplicationError, CancelledError, TimeoutError

from plans.activity_io import Return
from plans.execution.schedule import Outcome
from plans.run import Result, Status

CANCELLED_TEXT = "cancelled while it ran"


def completed(returned: Any, now: datetime, started: datetime) -> tuple[Outcome, Return]:
    """A tool's return. Anything else was given by hand (`temporal activity complete`) and is taken as the value."""
    try:
        given = Return.model_validate(returned)
    except ValidationError:
        given = Return(value=returned, duration=_milliseconds(now, started))
    result = Result(
        ok=True,
        value=given.value,
        large=given.large,
        duration=round(given.duration, 3),
        timestamp=now,
        attempt=given.attempt,
    )
    return Outcome(Status.COMPLETED, result), given


def failed(code: str, error: str, now: datetime, duration: float = 0.0, attempt: int = 1) -> Outcome:
    """A step that could not do its work."""
    result = Result(ok=False, error=error, code=code, duration=round(duration, 3), timestamp=now, attempt=attempt)
    return Outcome(Status.FAILED, result)


def skipped(reason: str, now: datetime, opens: bool = True, code: str | None = None) -> Outcome:
    """A step that was not to be done. `opens` is false for a denial, which blocks what depends on the step."""
    return Outcome(Status.SKIPPED, Result(ok=False, error=reason, code=code, timestamp=now), opens)


def cancelled(now: datetime, started: datetime) -> Outcome:
    """A step that ran when the plan was cancelled."""
    return failed("CANCELLED", CANCELLED_TEXT, now, _milliseconds(now, started))


def of_activity(error: BaseException, now: datetime, started: datetime) -> Outcome:
    """The outcome in an activity's failure: the tool's own error, a time limit, a cancellation."""
    cause = error.cause if isinstance(error, ActivityError) else error
    duration = _milliseconds(now, started)
    if isinstance(cause, ApplicationError):
        detail = cause.details[0] if cause.details and isinstance(cause.details[0], dict) else {}
        attempt = int(detail.get("attempt", 1))
        return failed(cause.type or "TOOL_FAILED", cause.message, now, float(detail.get("duration", duration)), attempt)
    if isinstance(cause, CancelledError):
        return cancelled(now, started)
    if isinstance(cause, TimeoutError):
        text = "the workers that ran it died or went silent, again and again; `plan doctor` shows the workers"
        return failed("WORKER_LOST", text, now, duration)
    return failed("TOOL_FAILED", str(cause)[:1_000] or type(cause).__name__, now, duration)


def left_behind(error: BaseException) -> Return:
    """What a failed call did to files all the same, as far as it could tell."""
    cause = error.cause if isinstance(error, ActivityError) else error
    details = cause.details[:1] if isinstance(cause, ApplicationError) else ()
    told = details[0] if details and isinstance(details[0], dict) else {}
    names = ("wrote", "deleted", "shared", "moreFiles", "sandbox", "warnings")
    try:
        return Return.model_validate({"duration": 0.0, **{name: told[name] for name in names if name in told}})
    except ValidationError:
        return Return(duration=0.0)


def _milliseconds(now: datetime, started: datetime) -> float:
    return (now - started).total_seconds() * 1_000
