"""What this task or thread works on: the attempt of a step, for log lines.

A context variable: tasks and threads that the attempt starts inherit it. Unset where telemetry is off.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import NamedTuple

from plansurvive.activities.tools.outgoing import NOTHING, Outgoing
from plansurvive.features.telemetry.trace_context import TraceContext


class Attempted(NamedTuple):
    """An attempt that runs."""

    workflow_id: str
    step_id: str
    activity: str
    """Name of the tool, or of another activity."""
    attempt: int
    trace: TraceContext | None = None


CURRENT: ContextVar[Attempted | None] = ContextVar("plans-attempt", default=None)


def outgoing(attempted: Attempted) -> Outgoing:
    """What goes along with requests and commands of the attempt: the id of its trace, if there is one."""
    if attempted.trace is None:
        return NOTHING
    parent = attempted.trace.traceparent
    return Outgoing({"traceparent": parent}, {"TRACEPARENT": parent})
