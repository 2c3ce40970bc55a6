"""Logs as JSON lines: one object per record, of which plan and attempt, without secrets."""

from __future__ import annotations

import io
import json
import logging
from typing import Any

from plansurvive.features.telemetry.current_attempt import CURRENT, Attempted, outgoing
from plansurvive.features.telemetry.json_logs import EVENT, LINE, JsonLines
from plansurvive.features.telemetry.trace_context import TraceContext

TRACE = TraceContext("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")
STEP = Attempted("plan-release", "deploy", "run_command", 2, TRACE)


def logged(message: str, **more: Any) -> dict[str, Any]:
    """What a record becomes."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines(lambda text: text.replace("hunter2hunter2", "[secret]")))
    logger = logging.Logger("a.test", logging.INFO)
    logger.addHandler(handler)
    logger.info(message, **more)
    (line,) = stream.getvalue().splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


def test_a_record_is_one_line_whatever_is_in_it() -> None:
    found = logged('two\nlines, "quoted" \u2028 \x1b[31m')
    assert found["message"] == 'two\nlines, "quoted" \u2028 \x1b[31m'
    assert (found["level"], found["logger"]) == ("info", "a.test")
    assert found["time"].endswith("+00:00")
    assert "planId" not in found


def test_a_record_of_an_attempt_says_of_which() -> None:
    token = CURRENT.set(STEP)
    try:
        found = logged("it works")
    finally:
        CURRENT.reset(token)
    assert {name: found[name] for name in ("planId", "stepId", "activity", "attempt", "traceId", "spanId")} == {
        "planId": "release", "stepId": "deploy", "activity": "run_command", "attempt": 2,
        "traceId": TRACE.trace_id, "spanId": TRACE.span_id,
    }  # fmt: skip


def test_a_record_of_a_workflow_says_of_which_plan() -> None:
    assert logged("x", extra={"temporal_workflow": {"workflow_id": "plan-release"}})["planId"] == "release"


def test_secrets_are_masked_in_messages_fields_and_tracebacks() -> None:
    try:
        raise ValueError("the key is hunter2hunter2")
    except ValueError:
        found = logged("hunter2hunter2", exc_info=True, extra={EVENT: {"code": "hunter2hunter2", "seconds": 1.5}})
    assert "hunter2" not in json.dumps(found)
    assert (found["code"], found["seconds"]) == ("[secret]", 1.5)
    assert "ValueError" in found["exception"]


def test_a_long_message_is_cut() -> None:
    assert len(logged("x" * 100_000)["message"]) == LINE + 3


def test_what_an_attempt_starts_gets_its_trace_and_nothing_without_one() -> None:
    parent = TRACE.traceparent
    assert outgoing(STEP) == ({"traceparent": parent}, {"TRACEPARENT": parent})
    assert outgoing(STEP._replace(trace=None)) == ({}, {})
