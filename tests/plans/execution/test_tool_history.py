"""Files of a step and of a run: listed once, relative to the workspace, known again when a call names them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from plansurvive.features.agents.in_views import IN_VIEWS
from plansurvive.plans.activity_io import Attempt, Logs, PastCall, Return
from plansurvive.plans.execution.messages import LogsAsked
from plansurvive.plans.execution.resume import rerun_only, resumed
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.execution.tool_history import (
    note_attempts,
    note_call,
    note_failure,
    note_files,
    relative,
)
from plansurvive.plans.file_stamps import stamp_of
from plansurvive.plans.in_views import ViewSet
from plansurvive.plans.run import Decision, Run
from plansurvive.plans.views.progress.logs import logs_page
from plansurvive.plans.views.text import text
from plansurvive.plans.views.views import tool_history
from tests.plans.building import NOW, begun, completed, failed, run_of, step


def test_a_written_file_is_listed_once_per_step() -> None:
    run = run_of(step("a"), step("b"))
    for _ in range(2):
        note_files(run, "a", Return(duration=1, wrote={"out/x": None, "y": stamp_of(b"y")}, read={"z": stamp_of(b"z")}))
    note_files(run, "b", Return(duration=1, wrote={"y": None}))
    assert run.steps["a"].wrote == ["out/x", "y"]
    assert run.steps["b"].wrote == ["y"]


@pytest.mark.parametrize(
    ("path", "listed"), [("/w/a", "a"), ("/w//a/./b", "a/b"), ("a/", "a"), ("/ws/a", "/ws/a"), ("../a", "../a")]
)
def test_a_path_is_listed_relative_to_the_workspace(path: str, listed: str) -> None:
    assert relative(path, "/w") == relative(path, "/w/") == listed


def called(args: dict[str, str], logs: Logs | None = None) -> Schedule:
    """A plan whose step `a` was called once, with arguments of ann's."""
    schedule = begun(step("a", tool="read_file", args={"path": "x"}))
    run, state = schedule.run, schedule.run.steps["a"]
    state.args, run.decisions["a"] = args, Decision(approved=True, by="ann", args=args, time=NOW)
    schedule.start("a", NOW)
    state.calls = 1
    note_call(run, run.plan.steps[0], args)
    outcome = completed("text")
    schedule.settle("a", outcome._replace(result=outcome.result.model_copy(update={"logs": logs})), NOW)
    return schedule


def history(run: Run) -> list[tuple[object, ...]]:
    return [(call["args"], call.get("asked"), call.get("changedBy")) for call in tool_history(run)["0"]]


def test_a_rerun_remembers_who_changed_the_arguments_of_the_call_before() -> None:
    run = called({"path": "y"}).run
    expected = [({"path": "y"}, {"path": "x"}, "ann")]
    assert history(run) == expected
    assert history(rerun_only(run, "a", "p-r2", NOW)) == expected


def test_a_result_of_an_earlier_run_is_no_call() -> None:
    schedule = called({"path": "x"})
    run, state = schedule.run, schedule.run.steps["a"]
    assert state.result is not None
    assert ("Tools: read_file (1 call)" in text(run), len(history(run))) == (True, 1)
    state.result = state.result.model_copy(update={"taken_from": "p0/a"})
    assert ("Tools: -" in text(run), tool_history(run)) == (True, {})


def test_a_failed_call_remembers_who_changed_its_arguments() -> None:
    run = begun(step("a", tool="read_file", args={"path": "x"})).run
    run.steps["a"].args, run.decisions["a"] = {"path": "y"}, Decision(approved=True, by="ann", time=NOW)
    attempts = [Attempt(number=1, began=NOW, code="TOOL_FAILED", error="no", delay=1.0)]
    note_failure(run, run.plan.steps[0], failed().result, NOW, Return(duration=1, attempts=attempts))
    assert history(run) == 2 * [({"path": "y"}, {"path": "x"}, "ann")]


@pytest.mark.parametrize(("logs", "kept"), [(Logs(stdout=3), True), (Logs(stdout=3, of_value=[(1, 3)]), False)])
def test_a_call_with_a_value_has_not_failed_in_the_logs_of_a_rerun(logs: Logs, kept: bool) -> None:
    run = rerun_only(called({"path": "x"}, logs).run, "a", "p-r2", NOW)
    [attempt] = logs_page(run, LogsAsked(step_id="a")).steps[0].attempts
    assert (attempt.code, attempt.error, attempt.logs) == (None, "", logs if kept else None)
    assert attempt.run


def test_attempts_of_earlier_runs_are_counted_by_run_and_a_step_that_was_kept_says_so() -> None:
    retried = Attempt(number=1, began=NOW, duration=1, code="BROKEN", error="first", delay=1)
    run = begun(step("a"), step("b")).run
    schedule = Schedule(run)
    for each, outcome in zip(run.plan.steps, (completed(1), failed()), strict=True):
        schedule.start(each.id, NOW)
        run.steps[each.id].calls = 1
        note_attempts(run, each, [retried])
        schedule.settle(each.id, outcome, NOW)
    schedule.end(NOW)
    later = NOW + timedelta(minutes=1)
    again = resumed(run, "p-r2", later)
    Schedule(again).begin(later)
    shown = [row.strip() for row in text(again, detailed=True).splitlines()]
    at = shown.index("[ ] b · ready")
    assert [row for row in shown[:at] if "ttempt" in row or "Kept" in row] == [
        "Kept from plan p", "Attempt 1 failed: BROKEN first; next in 1 s",
    ], shown  # fmt: skip
    assert [row for row in shown[at:] if "ttempt" in row or "Kept" in row] == ["2 attempts in plan p"], shown


@pytest.mark.uses("agents")
def test_a_resumed_agents_step_keeps_the_calls_of_the_agent_before() -> None:
    run = begun(step("a", tool="agent")).run
    run.views = ViewSet([IN_VIEWS])
    state = run.steps["a"]
    state.past = [PastCall(tool="read_file", args={}, result="x", time=NOW, agent="agent-1", number=201)]
    state.more_past, state.earlier = 200, {"read_file": 200}
    run.agents = {"a": {}}
    assert "read_file (201 calls)" in text(run)
    assert "earlier attempts" not in text(run)
    again = resumed(run, "p-r2", NOW)
    again.views = run.views
    assert "read_file (201 calls)" in text(again)
    assert [each.agent for each in again.steps["a"].past] == ["agent-1"]


def test_a_resumed_plan_waits_for_no_request_of_a_terminated_one() -> None:
    run = begun(step("a")).run
    run.ledger = run.ledger.opened("1", 100)
    assert resumed(run, "p-r2", NOW).ledger.open == {}


def test_a_tool_that_asked_first_has_not_failed_an_attempt() -> None:
    """It found that a person has to approve the call, and did nothing."""
    run = called({"path": "y"}).run
    asked = Attempt(number=1, began=NOW, duration=1.0, code="APPROVAL_REQUIRED", error="'y' exists")
    lost = asked.model_copy(update={"number": 2, "code": "WORKER_LOST"})
    for attempt in (asked, lost):
        run.steps["a"].past.append(PastCall(tool="read_file", args={}, result="", call=1, time=NOW, attempt=attempt))
    (shown,) = logs_page(run, LogsAsked()).steps
    assert [attempt.code for attempt in shown.attempts] == ["WORKER_LOST"]
