"""Where a span is in its trace, and the ids of spans: derived from workflow, step and attempt, never drawn by chance.

Whoever writes the span of a step, a worker that replays the plan, that took it over from one that was killed, or that
runs a later part of its history, gives it the same id. So a trace is one tree without anything being remembered.
Formats: W3C Trace Context, level 1 (`traceparent`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_SPAN = re.compile(r"[0-9a-f]{16}")
_LONGEST = 200
"""Characters of a `traceparent` that are read; version 00 has 55."""


class TraceContext(NamedTuple):
    """A span of a trace, as others refer to it."""

    trace_id: str
    """32 hexadecimal digits."""
    span_id: str
    """16 hexadecimal digits."""
    sampled: bool = True
    """Whether the spans of this trace are exported."""

    @property
    def traceparent(self) -> str:
        """The value of the header `traceparent` and of the variable TRACEPARENT."""
        return f"00-{self.trace_id}-{self.span_id}-{'01' if self.sampled else '00'}"

    def of(self, *names: str) -> TraceContext:
        """A span of the same trace, whose id follows from these names and from this span."""
        return self._replace(span_id=_digest(self.trace_id, self.span_id, *names)[:16])


class Carried(NamedTuple):
    """What a workflow tells its activities: its own span, its parent's, and when its first run began."""

    own: TraceContext
    parent: str = ""
    """Id of the span above it; empty: it is the root."""
    began: datetime | None = None

    def to_json(self) -> dict[str, str]:
        """The header's value. Its `traceparent` is what other programs that read such headers take for the parent."""
        began = {"began": self.began.isoformat()} if self.began else {}
        return {"traceparent": self.own.traceparent, **({"parent": self.parent} if self.parent else {}), **began}


def read_traceparent(text: object) -> TraceContext | None:
    """The context that a `traceparent` names; None if it names none, in which case a trace begins (W3C, 3.2.2)."""
    found = _TRACEPARENT.fullmatch(text) if isinstance(text, str) and len(text) <= _LONGEST else None
    if found is None:
        return None
    version, trace_id, span_id, flags, more = found.groups()
    if version == "ff" or (version == "00" and more) or not trace_id.strip("0") or not span_id.strip("0"):
        return None
    return TraceContext(trace_id, span_id, bool(int(flags, 16) & 1))


def read_carried(data: object) -> Carried | None:
    """What a header carries, of whatever origin; None if it is unreadable."""
    if not isinstance(data, Mapping):
        return None
    own, parent = read_traceparent(data.get("traceparent")), data.get("parent")
    if own is None:
        return None
    is_span = isinstance(parent, str) and _SPAN.fullmatch(parent) is not None
    return Carried(own, str(parent) if is_span else "", read_time(data.get("began")))


def read_time(text: Any) -> datetime | None:
    """A time with its zone, as it was carried; None if it is unreadable."""
    try:
        time = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return time if time and time.tzinfo else None


def first_trace_id(workflow_id: str, first_run_id: str) -> str:
    """The id of the trace that a workflow begins; the same in all of its runs."""
    return _digest("trace", workflow_id, first_run_id)[:32]


def of_workflow(above: TraceContext | None, workflow_id: str, first_run_id: str, *, sampled: bool) -> TraceContext:
    """The span of a workflow. `sampled` counts only where a trace begins: else what is above it says so."""
    root = TraceContext(first_trace_id(workflow_id, first_run_id), "0" * 16, sampled)
    return (above or root).of("workflow", workflow_id, first_run_id)


def of_step(plan: TraceContext, step_id: str) -> TraceContext:
    """The span of a step of the plan with that span."""
    return plan.of("step", step_id)


def of_attempt(above: TraceContext, activity_id: str, attempt: int) -> TraceContext:
    """The span of an attempt, counted from 1 as the server counts, of an activity that belongs to a span."""
    return above.of("attempt", activity_id, str(attempt))


def _digest(*names: str) -> str:
    # Each name with its length: ("a", "b") and ("ab", "") must not be the same. No hash that we can meet is all zeros.
    text = "".join(f"{len(name)}:{name}" for name in names)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
