"""Where a span is in its trace: what is read of a traceparent, and ids that follow from names alone."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from plansurvive.features.telemetry.trace_context import (
    Carried,
    TraceContext,
    of_attempt,
    of_step,
    of_workflow,
    read_carried,
    read_traceparent,
)

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
CALLER = TraceContext(TRACE, SPAN)


def test_a_traceparent_is_read_as_it_is_written() -> None:
    assert read_traceparent(f"00-{TRACE}-{SPAN}-01") == CALLER
    assert read_traceparent(f"00-{TRACE}-{SPAN}-00") == TraceContext(TRACE, SPAN, sampled=False)
    assert read_traceparent(CALLER.traceparent) == CALLER


def test_a_later_version_is_read_as_far_as_it_is_known() -> None:
    assert read_traceparent(f"cc-{TRACE}-{SPAN}-01-what-the-future-adds") == CALLER
    assert read_traceparent(f"cc-{TRACE}-{SPAN}-03") == CALLER


@pytest.mark.parametrize(
    "text",
    [
        None, 7, "", "00", f"00-{TRACE}-{SPAN}", f"00-{TRACE.upper()}-{SPAN}-01", f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01", f"00-{TRACE}-{'0' * 16}-01", f"00-{TRACE}-{SPAN}-01-more", f" 00-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01\n", f"cc-{TRACE}-{SPAN}-01-" + "x" * 1_000,
    ],
)  # fmt: skip
def test_what_is_no_traceparent_begins_a_trace(text: object) -> None:
    assert read_traceparent(text) is None


def test_ids_follow_from_names_alone() -> None:
    plan = of_workflow(None, "plan-a", "run-1", sampled=True)
    assert plan == of_workflow(None, "plan-a", "run-1", sampled=True)
    assert len(plan.trace_id) == 32
    assert len(plan.span_id) == 16
    assert read_traceparent(plan.traceparent) == plan
    assert of_attempt(of_step(plan, "one"), "one", 2) == of_attempt(of_step(plan, "one"), "one", 2)


def test_no_two_names_give_the_same_span() -> None:
    plan = of_workflow(CALLER, "plan-a", "run-1", sampled=True)
    others = [
        of_workflow(CALLER, "plan-b", "run-1", sampled=True), of_workflow(CALLER, "plan-a", "run-2", sampled=True),
        of_step(plan, "one"), of_step(plan, "two"), of_step(of_step(plan, "one"), "two"),
        of_attempt(of_step(plan, "one"), "one", 1), of_attempt(of_step(plan, "one"), "one", 2),
        of_attempt(of_step(plan, "one"), "one#2", 1), of_attempt(plan, "ab", 1), of_attempt(plan, "a", 11),
        plan, CALLER,
    ]  # fmt: skip
    assert len({each.span_id for each in others}) == len(others)
    assert {each.trace_id for each in others} == {TRACE}


def test_a_plan_in_a_callers_trace_is_exported_if_the_callers_is() -> None:
    caller = CALLER._replace(sampled=False)
    assert not of_workflow(caller, "plan-a", "run-1", sampled=True).sampled
    assert of_workflow(CALLER, "plan-a", "run-1", sampled=False).sampled


def test_what_a_workflow_tells_its_activities_arrives() -> None:
    told = Carried(CALLER, "00f067aa0ba902b7", datetime(2026, 1, 1, tzinfo=UTC))
    assert read_carried(told.to_json()) == told
    assert read_carried(Carried(CALLER).to_json()) == Carried(CALLER)


@pytest.mark.parametrize("data", [None, [], {}, {"traceparent": 1}, {"traceparent": "00-x"}, "text"])
def test_an_unreadable_header_carries_nothing(data: object) -> None:
    assert read_carried(data) is None


def test_of_a_header_that_is_partly_unreadable_the_rest_counts() -> None:
    data = {"traceparent": CALLER.traceparent, "parent": "nonsense", "began": "yesterday", "more": {}}
    assert read_carried(data) == Carried(CALLER)
    assert read_carried(data | {"parent": ["0"], "began": "2026-01-01T00:00:00"}) == Carried(CALLER)
