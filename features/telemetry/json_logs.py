"""Logs as JSON lines: time, level, logger, message, and of a step's attempt its plan, step, attempt and trace.

Secrets that the worker knows are masked in everything. A line has at most LINE characters of message and of traceback.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TextIO

from plansurvive.features.telemetry.current_attempt import CURRENT

LINE = 8_000
"""Characters of a message or traceback in one line."""
EVENT = "plans_event"
"""Attribute of a log record with further fields of its line."""
OWN = logging.getLogger("plans.telemetry")
"""Our own records: attempts, LLM requests and plans that have ended."""


class JsonLines(logging.Formatter):
    """One JSON object per record. `mask` takes the secrets out of a text."""

    def __init__(self, mask: Callable[[str], str]) -> None:
        super().__init__()
        self._mask = mask

    def format(self, record: logging.LogRecord) -> str:
        """The record's line."""
        fields: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self._text(record.getMessage()),
        }
        fields |= _place(record)
        event = getattr(record, EVENT, None)
        if isinstance(event, dict):
            fields |= {name: self._text(value) if isinstance(value, str) else value for name, value in event.items()}
        if record.exc_info:
            fields["exception"] = self._text(self.formatException(record.exc_info))
        return json.dumps(fields, ensure_ascii=True, default=str)

    def _text(self, text: str) -> str:
        masked = self._mask(text)
        return masked if len(masked) <= LINE else f"{masked[:LINE]}..."


def install(level: str, mask: Callable[[str], str], stream: TextIO | None = None) -> logging.Handler:
    """Write all logs of this process as JSON lines to standard error, in place of what was set up before."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines(mask))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    OWN.setLevel(level.upper())
    for name in ("temporalio", "plansurvive"):
        logging.getLogger(name).setLevel(level.upper())
    if level in ("error", "debug"):
        root.setLevel(level.upper())
    return handler


def _place(record: logging.LogRecord) -> dict[str, Any]:
    """What the record is about: the attempt that wrote it, or what Temporal says of the workflow."""
    now = CURRENT.get()
    if now is not None:
        found: dict[str, Any] = {"planId": plan_of(now.workflow_id), "activity": now.activity, "attempt": now.attempt}
        if now.step_id:
            found["stepId"] = now.step_id
        if now.trace is not None:
            found |= {"traceId": now.trace.trace_id, "spanId": now.trace.span_id}
        return found
    about = getattr(record, "temporal_workflow", None) or getattr(record, "temporal_activity", None)
    workflow_id = about.get("workflow_id") if isinstance(about, dict) else None
    return {"planId": plan_of(workflow_id)} if isinstance(workflow_id, str) else {}


def plan_of(workflow_id: str) -> str:
    """The id of a plan or an agent, as people know it."""
    return workflow_id.removeprefix("plan-")
