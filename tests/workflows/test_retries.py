"""Retries on a real server: how many attempts, how far apart, and which errors are not retried."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from plansurvive.plans.activity_io import Attempt, Return
from plansurvive.plans.execution.tool_history import (
    MAX_ERROR,
    MAX_PAST,
    MAX_RETRIED,
    last_call,
    note_attempts,
    note_failure,
)
from plansurvive.plans.run import Result
from plansurvive.plans.views.text import text
from tests.kit.driving import Plans, Started, step, work
from tests.kit.waiting import until
from tests.plans.building import NOW, begun
from tests.plans.building import step as step_of

COUNT = "date +%s.%N >> tries; exit 3"


@pytest.mark.slow
@pytest.mark.modes("plain")
async def test_a_failing_step_is_tried_three_times_after_one_second_and_two(plans: Plans) -> None:
    command = {"id": "fails", "tool": "run_command", "args": {"command": COUNT}, "requiresApproval": False}
    plan = await plans.start([command])
    view = await plan.ended()
    times = [float(line) for line in (plans.workspace / "tries").read_text().split()]
    assert [round(after - before) >= least for (before, after), least in zip(pairwise(times), (1, 2), strict=True)] == [
        True, True
    ]  # fmt: skip
    assert step(view, "fails")["result"]["attempt"] == 3
    assert step(view, "fails")["result"]["code"] == "COMMAND_FAILED"
    policy = (await plan.scheduled())["fails"].retry_policy
    assert policy.initial_interval.ToTimedelta().total_seconds() == 1.0
    assert policy.backoff_coefficient == 2.0
    assert policy.maximum_attempts >= 3


@pytest.mark.crosses_runs
async def test_a_step_that_works_at_the_second_attempt_completes(plans: Plans) -> None:
    view = await plans.run([work("a", args={"fails": 1}, retry={"attempts": 3, "delay": 0.05}), work("b", "a")])
    assert view["status"] == "completed"
    assert step(view, "a")["result"]["attempt"] == 2
    assert [line for line in plans.ledger if line[1] == "a"] == [
        ["start", "a", "1"],
        ["start", "a", "2"],
        ["end", "a", "2"],
    ]


@pytest.mark.crosses_runs
async def test_a_step_may_say_how_often_it_is_tried(plans: Plans) -> None:
    view = await plans.run(
        [
            work("once", args={"fails": 9}, retry={"attempts": 1}),
            work("twice", args={"fails": 9}, retry={"attempts": 2, "delay": 0.05}),
        ]
    )
    tries = [name for what, name, _ in plans.ledger if what == "start"]
    assert sorted(tries) == ["once", "twice", "twice"]
    assert step(view, "once")["result"]["code"] == "BUSY"
    assert step(view, "twice")["result"]["attempt"] == 2


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ({"tool": "refuse", "args": {"code": "CONFLICT"}}, "CONFLICT"),
        ({"tool": "read_file", "args": {"path": "missing.txt"}}, "NOT_FOUND"),
        ({"tool": "read_file", "args": {"path": "$outside"}}, "PATH_OUTSIDE"),
        ({"tool": "read_file", "args": {"path": "$number"}}, "INVALID_ARGS"),
        ({"tool": "edit_file", "args": {"path": "a.txt", "oldText": "absent", "newText": "y"}}, "EDIT_NO_MATCH"),
    ],
)
async def test_what_cannot_get_better_is_tried_once(plans: Plans, call: dict[str, Any], code: str) -> None:
    (plans.workspace / "a.txt").write_text("text")
    steps = [work("number", args={"value": 5}), work("outside", args={"value": "../x"}), {"id": "bad", **call}]
    plan = await plans.start(steps)
    view = await plan.ended()
    assert step(view, "bad")["status"] == "failed"
    assert step(view, "bad")["result"]["code"] == code
    assert await _attempts(plan, "bad") == 1


async def test_a_step_that_takes_too_long_is_ended_and_tried_again(plans: Plans) -> None:
    steps = [work("slow", seconds=30.0, timeout=0.2, retry={"attempts": 2, "delay": 0.05})]
    plan = await plans.start(steps)
    view = await plan.ended()
    assert step(view, "slow")["result"]["code"] == "STEP_TIMEOUT"
    assert await _attempts(plan, "slow") == 2


async def _attempts(plan: Started, activity_id: str) -> int:
    """Number of attempts of one activity according to the history."""
    events = await plan.events()
    scheduled = {
        event.event_id for event in events if event.activity_task_scheduled_event_attributes.activity_id == activity_id
    }
    return max(
        event.activity_task_started_event_attributes.attempt
        for event in events
        if event.activity_task_started_event_attributes.scheduled_event_id in scheduled
    )


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.crosses_runs
async def test_three_attempts_are_three_records_of_the_history_each_with_its_error_and_time(plans: Plans) -> None:
    rule = {"attempts": 3, "delay": 0.05, "factor": 2.0}
    plan = await plans.start([work("a", args={"fails": 2}, retry=rule), work("b", "a", args={"fails": 9}, retry=rule)])
    view = await plan.ended()
    first, second = view["step_tool_history"]["0"], view["step_tool_history"]["1"]
    assert [call["result"] for call in first] == [
        "Error: call 1 of a fails", "Error: call 2 of a fails", "a"
    ]  # fmt: skip
    assert [call["result"] for call in second] == [f"Error: call {number} of b fails" for number in (1, 2, 3)]
    for calls in (first, second):
        assert [(call["attempt"], call["args"]["fails"]) for call in calls] == [
            (number, calls[0]["args"]["fails"]) for number in (1, 2, 3)
        ]
        assert [call.get("delay") for call in calls] == [0.05, 0.1, None]
        times = [call["timestamp"] for call in calls]
        assert times == sorted(times)
    assert [call.get("code") for call in second] == ["BUSY"] * 3
    text = await plan.handle.query("text")
    assert text.count("work (3 calls)") == 2
    assert "Attempt 2 failed: BUSY call 2 of a fails; next in 0.1 s" in text
    ends = {event["stepId"]: event for event in await plan.handle.query("events") if "result" in event}
    assert [len(ends[name]["attempts"]) for name in ("a", "b")] == [2, 2]


@pytest.mark.crosses_runs
async def test_each_attempt_has_the_arguments_that_the_approver_put_in_place(plans: Plans) -> None:
    rule = {"attempts": 2, "delay": 0.05}
    plan = await plans.start([work("gate", args={"fails": 1}, retry=rule, requiresApproval=True)])
    await plan.until_asked("gate")
    await plan.approve("gate", args={"name": "gate", "fails": 1, "value": "changed"})
    view = await plan.ended()
    calls = view["step_tool_history"]["0"]
    assert [(call["args"]["value"], call["attempt"]) for call in calls] == [("changed", 1), ("changed", 2)]


async def test_attempts_before_a_cancellation_are_recorded(plans: Plans) -> None:
    command = "echo x >> tries; [ $(wc -l < tries) -gt 1 ] || exit 3; touch second; sleep 600"
    rule = {"attempts": 3, "delay": 0.05}
    tool = {"id": "a", "tool": "run_command", "args": {"command": command}, "requiresApproval": False, "retry": rule}
    plan = await plans.start([tool])
    await until((plans.workspace / "second").exists, "the second attempt runs")
    await plan.handle.cancel()
    view = await plan.ended()
    assert (view["status"], step(view, "a")["result"]["code"]) == ("cancelled", "CANCELLED")
    calls = view["step_tool_history"]["0"]
    assert [(call["attempt"], call["code"]) for call in calls] == [(1, "COMMAND_FAILED"), (2, "CANCELLED")]


def test_a_run_with_very_many_retries_counts_the_later_ones() -> None:
    schedule = begun(step_of("a"), step_of("b"))
    run = schedule.run
    run.retried = MAX_RETRIED - 1
    attempts = [Attempt(number=number, began=NOW, code="BUSY", error="busy", delay=1.0) for number in (1, 2)]
    for name in ("a", "b"):
        note_attempts(run, schedule.step(name), attempts)
    kept = [(len(run.steps[name].past), run.steps[name].more_past) for name in ("a", "b")]
    assert kept == [(1, 1), (0, 2)]


def test_a_step_with_more_attempts_than_are_listed_counts_the_rest() -> None:
    schedule = begun(step_of("a"))
    run, first = schedule.run, schedule.step("a")
    attempts = [
        Attempt(number=number, began=NOW, code="BUSY", error="x" * 9_000, delay=1.0) for number in range(1, 121)
    ]
    run.steps["a"].calls = 1
    note_attempts(run, first, attempts, more=7)
    note_failure(run, first, Result(ok=False, code="BUSY", error="last", timestamp=NOW), NOW, Return(duration=0.0))
    state = run.steps["a"]
    assert (len(state.past), state.more_past) == (MAX_PAST, 28)
    assert [call.retried for call in state.past[-2:]] == [True, False]
    assert max(len(call.attempt.error) for call in state.past if call.attempt) == MAX_ERROR
    assert not last_call(state)
    assert "note (128 calls)" in text(run)
    assert "122 earlier attempts" in text(run)
