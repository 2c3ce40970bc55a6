"""The spans of an activity that has ended: one for each attempt, all written by the worker that made the last one.

The attempts before it are in the heartbeat's details, on the server, those included that were lost with their worker.
So each attempt has exactly one span however many workers were killed, and none is exported twice by a retry.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from temporalio import activity
from temporalio.exceptions import ApplicationError

from plansurvive.features.telemetry.spans import Attribute, Span, code_of
from plansurvive.features.telemetry.trace_context import TraceContext, of_attempt
from plansurvive.plans.activity_io import Attempt
from plansurvive.plans.views.models.live import attempts_of

Outcome = Literal["completed", "failed", "cancelled", "again"]
"""How an attempt ended. `again`: another one follows; its span is written by the last."""
CANCELLED = "CANCELLED"


@dataclass(frozen=True)
class Ended:
    """How an attempt ended, and what is known of those before it."""

    outcome: Outcome
    code: str = ""
    earlier: Sequence[Attempt] = ()

    @classmethod
    def of(cls, result: Any, error: BaseException | None) -> Ended:
        """From what the activity returned or raised."""
        if error is None:
            return cls("completed", earlier=getattr(result, "attempts", ()))
        if isinstance(error, asyncio.CancelledError):
            return cls("cancelled" if _is_asked() else "again", CANCELLED)
        if not isinstance(error, ApplicationError):
            return cls("again", "TOOL_FAILED")
        code = code_of(error.type, "TOOL_FAILED")
        if not error.non_retryable:
            return cls("again", code)
        known = _details(error).get("attempts")
        attempts = attempts_of(known)  # its own record is the last of them
        return cls("cancelled" if code == CANCELLED else "failed", code, attempts[:-1])


def spans_of(
    info: activity.Info, above: TraceContext, name: str, attributes: Mapping[str, Attribute], ended: Ended,
    now: datetime, own: Mapping[str, Attribute] | None = None, kind: Literal["internal", "client"] = "internal",
) -> Iterator[Span]:  # fmt: skip
    """The spans of all attempts; none while another one follows. `own`: attributes of the last one only."""
    if ended.outcome == "again":
        return
    first = info.attempt - len(ended.earlier)
    for number, attempt in enumerate(ended.earlier, first):
        context = of_attempt(above, info.activity_id, number)
        error = code_of(attempt.code, "TOOL_FAILED")
        more = {**attributes, "plans.attempt": number}
        yield Span(name, context, above.span_id, attempt.began, max(attempt.began, attempt.ended), more, error, kind)
    context = of_attempt(above, info.activity_id, info.attempt)
    more = {**attributes, **(own or {}), "plans.attempt": info.attempt}
    began = info.started_time
    yield Span(name, context, above.span_id, began, max(began, now), more, ended.code, kind)


def usage_of(result: Any, error: BaseException | None) -> tuple[int, int]:
    """Tokens of the prompt and of the answer of an LLM request; failed ones may have used some."""
    if error is None:
        return result.usage.prompt_tokens, result.usage.completion_tokens
    usage = _details(error).get("usage") if isinstance(error, ApplicationError) else None
    found = usage if isinstance(usage, dict) else {}
    return _count(found.get("promptTokens")), _count(found.get("completionTokens"))


def _details(error: ApplicationError) -> Mapping[str, Any]:
    details = error.details[0] if error.details else None
    return details if isinstance(details, dict) else {}


def _count(found: Any) -> int:
    return found if isinstance(found, int) and found >= 0 else 0


def _is_asked() -> bool:
    """Whether the plan cancelled the activity; else its worker stops, and another one goes on."""
    details = activity.cancellation_details()
    return details is not None and details.cancel_requested
