"""What this task or thread works on: the attempt of a step, for log lines and for what tools start.

A context variable: tasks and threads that the attempt starts inherit it. Unset where telemetry is off.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import NamedTuple

from plansurvive.plans.telemetry.trace_context import TraceContext


class Attempted(NamedTuple):
    """An attempt that runs."""

    workflow_id: str
    step_id: str
    activity: str
    """Name of the tool, or of another activity."""
    attempt: int
    trace: TraceContext | None = None


CURRENT: ContextVar[Attempted | None] = ContextVar("plans-attempt", default=None)


def traceparent() -> str:
    """The `traceparent` of what this attempt starts; empty if there is no trace."""
    now = CURRENT.get()
    return now.trace.traceparent if now and now.trace else ""


def variables() -> dict[str, str]:
    """The variables of a command of this attempt: TRACEPARENT, if there is a trace."""
    found = traceparent()
    return {"TRACEPARENT": found} if found else {}


def headers() -> dict[str, str]:
    """The headers of a request of this attempt: `traceparent`, if there is a trace."""
    found = traceparent()
    return {"traceparent": found} if found else {}
