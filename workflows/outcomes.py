"""Maps the result or failure of an activity to a step's Outcome: one function per kind of end."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pydantic import ValidationError
from temporalio.exceptions import ActivityError, ApplicationError, CancelledError, TimeoutError

from plansurvive.plans.activity_io import WORKER_LOST, Attempt, Return
from plansurvive.plans.errors import Undecodable
from plansurvive.plans.execution.calling import number, result_of
from plansurvive.plans.log import LogKind
from plansurvive.plans.run import Result, Run, Status
from plansurvive.plans.step_state import Outcome, StepState
from plansurvive.plans.views.models.live import ended_text
from plansurvive.workflows import policies

CANCELLED_TEXT = "cancelled while it ran"


def completed(returned: Any, now: datetime, started: datetime) -> tuple[Outcome, Return]:
    """The outcome of a tool's Return. Any other result (from `temporal activity complete`) becomes the step's value."""
    lasted = _milliseconds(now, started)
    if not _is_json(returned):
        returned = Undecodable(f"the result is not JSON but {type(returned).__name__}; send it as JSON (json/plain)")
    if isinstance(returned, Undecodable):  # from `temporal activity complete`: our own workers send JSON
        return failed(returned.code, returned.message, now, lasted), Return(duration=0.0)
    try:
        parsed = Return.model_validate(returned)
    except ValidationError:
        parsed = Return(value=returned, duration=lasted)
    return Outcome(Status.COMPLETED, result_of(parsed, now, lasted)), parsed


def failed(code: str, error: str, now: datetime, duration: float = 0.0, attempt: int = 1) -> Outcome:
    """The outcome of a failed step. `duration` is in milliseconds."""
    result = Result(ok=False, error=error, code=code, duration=round(duration, 3), timestamp=now, attempt=attempt)
    return Outcome(Status.FAILED, result)


def skipped(reason: str, now: datetime, opens: bool = True, code: str | None = None) -> Outcome:
    """The outcome of a skipped step. `opens` is false for a denial: dependents are then permanently blocked."""
    return Outcome(Status.SKIPPED, Result(ok=False, error=reason, code=code, timestamp=now), opens)


def cancelled(now: datetime, started: datetime) -> Outcome:
    """The outcome of a step that was running when the plan was cancelled."""
    return failed("CANCELLED", CANCELLED_TEXT, now, _milliseconds(now, started))


def lasted(outcome: Outcome, state: StepState, now: datetime) -> Outcome:
    """The outcome of a block or loop, with the time since it began."""
    result = outcome.result.model_copy(update={"duration": _milliseconds(now, state.began or now)})
    return outcome._replace(result=result)


def of_activity(error: BaseException, now: datetime, started: datetime) -> Outcome:
    """The outcome of a failed activity: the tool's own error, a cancellation, or a lost worker (timeout)."""
    cause = error.cause if isinstance(error, ActivityError) else error
    duration = _milliseconds(now, started)
    if isinstance(cause, ApplicationError):
        detail = cause.details[0] if cause.details and isinstance(cause.details[0], dict) else {}
        attempt, duration = int(number(detail.get("attempt"), 1)), number(detail.get("duration"), duration)
        return failed(cause.type or "TOOL_FAILED", cause.message, now, duration, attempt)
    if isinstance(cause, CancelledError):
        return cancelled(now, started)
    if isinstance(cause, TimeoutError):
        text = "every attempt lost its worker (it died or stopped sending heartbeats); run: plan doctor"
        return failed(WORKER_LOST, text, now, duration)
    return failed("TOOL_FAILED", str(cause)[:1_000] or type(cause).__name__, now, duration)


def left_behind(error: BaseException) -> Return:
    """The file changes, parts and attempts that a failed call reported; an empty Return when there are none."""
    cause = error.cause if isinstance(error, ActivityError) else error
    reported = _reported(cause)
    names = ("wrote", "deleted", "shared", "sharedWith", "missing", "moreFiles", "sandbox", "warnings")
    try:
        left = Return.model_validate({"duration": 0.0, **{name: reported[name] for name in names if name in reported}})
    except ValidationError:
        left = Return(duration=0.0)
    if isinstance(parts := reported.get("parts"), dict):
        left = left.model_copy(update={"parts": parts})
    attempts = {name: reported[name] for name in ("attempts", "moreAttempts") if name in reported}
    try:
        told = Return.model_validate({"duration": 0.0, **attempts})
    except ValidationError:
        return left
    return left.model_copy(update={"attempts": told.attempts, "more_attempts": told.more_attempts})


def log_attempts(run: Run, about: str, attempts: Sequence[Attempt], now: datetime, step_id: str = "") -> None:
    """Log the attempts of an LLM request that gave no answer. `about`: what the request is about."""
    for attempt in attempts:
        text = f"{about}: {ended_text(attempt, policies.ASK_LLM.retry.attempts)}"
        run.note(LogKind.LLM, text, now, step_id if step_id in run.steps else None, code=attempt.code)


def _reported(cause: BaseException | None) -> dict[str, Any]:
    """What a failed attempt told in its error's details, or the last attempt of a lost worker in its heartbeat's."""
    if isinstance(cause, ApplicationError):
        details = cause.details[:1]
    else:
        details = cause.last_heartbeat_details[:1] if isinstance(cause, TimeoutError) else ()
    return details[0] if details and isinstance(details[0], dict) else {}


def _is_json(value: Any) -> bool:
    """Whether a decoded result can be stored: the SDK decodes bytes and protobuf messages as well."""
    if isinstance(value, bytes):
        return _is_text(value)
    return value is None or isinstance(value, (dict, list, str, int, float, Undecodable))


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _milliseconds(now: datetime, started: datetime) -> float:
    return (now - started).total_seconds() * 1_000
