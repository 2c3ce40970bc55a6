"""A row says once how a step stands, from its state and from every view of it alike."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from plansurvive.plans.run import DENIED, Decision, Result, Status, StepState
from plansurvive.plans.step_state import Answered
from plansurvive.plans.text.lengths import seconds
from plansurvive.plans.views.models import BriefStep, DecisionView, ResultView, TaskView
from plansurvive.plans.views.models.live import live_of
from plansurvive.plans.views.steps.row import decided, live_row, row, shortened, verdicts
from tests.plans.building import NOW


def result(**more: Any) -> dict[str, Any]:
    return {"ok": False, "duration": 3_200, "timestamp": NOW, **more}


@pytest.mark.parametrize(
    ("status", "more", "sign", "how"),
    [
        ("completed", {"result": result(ok=True)}, "completed", "completed in 3.2 s"),
        ("completed", {"result": result(ok=True, attempt=2)}, "completed", "completed in 3.2 s, attempt 2"),
        ("failed", {"result": result(code="BUSY", error="no")}, "failed", "failed after 3.2 s (BUSY)"),
        ("skipped", {"result": result(code=DENIED, error="User denied approval")}, "denied", "denied"),
        ("skipped", {}, "skipped", "skipped"),
        ("blocked", {"never": True}, "blocked", "permanently blocked"),
        ("blocked", {}, "blocked", "blocked"),
        ("ready", {"awaiting": "approval"}, "waiting", "awaiting approval"),
        ("running", {"awaiting": "approval"}, "waiting", "awaiting approval"),
        ("running", {}, "running", "running"),
    ],
)
def test_a_step_stands_the_same_in_its_state_and_in_a_view(
    status: str, more: dict[str, Any], sign: str, how: str
) -> None:
    view = BriefStep.model_validate({"id": "a", "tool": "t", "status": status, **more})
    state = StepState.model_validate({"status": status, **more})
    assert row(view) == row(state)
    assert (row(view).sign, row(view).how) == (sign, how)
    assert row(view).error == ("no" if sign == "failed" else "")


def test_a_row_says_why_a_step_was_not_run_and_where_its_result_is_from() -> None:
    assert row(StepState(status=Status.SKIPPED, reason="its condition is false")).reason == "its condition is false"
    denied = Result(timestamp=NOW, ok=False, code=DENIED, error="User denied approval")
    assert row(StepState(status=Status.SKIPPED, result=denied)).reason == "User denied approval"
    taken = ResultView(ok=True, duration=10, taken_from="before/a")
    assert row(BriefStep(id="a", tool="t", status=Status.COMPLETED, result=taken)).how == (
        "completed in 10 ms, from before/a"
    )


def test_a_row_of_a_running_step_says_how_far_it_is() -> None:
    tasks = [TaskView(objective="x", status="done"), TaskView(objective="y", status="current")]
    step = BriefStep(id="a", tool="t", status=Status.RUNNING, started_at=NOW, tasks=tasks, description="Do it")
    later = NOW + timedelta(seconds=65)
    found = live_row(step, later)
    assert (found.tasks, found.took, found.share, found.text) == ("1/2 tasks", "1:05", None, "Do it")
    attempt = {"number": 1, "began": NOW, "code": "BUSY", "error": "no"}
    details = {"errors": 1, "of": 3, "attempts": [attempt]}
    waits = step.model_copy(update={"live": live_of(details, later + timedelta(seconds=2))})
    again = live_row(waits, later)
    assert (again.attempt, again.error, again.took) == ("attempt 2 of 3 in 2 s", "no", "")
    busy = step.model_copy(update={"live": live_of({"progress": 40, "line": "half way"})})
    assert (live_row(busy, later).share, live_row(busy, later).text) == (40, "half way")
    sleeps = step.model_copy(update={"until": NOW + timedelta(seconds=130)})
    assert live_row(sleeps, later).share == 50


def test_who_decided_is_said_alike_of_a_decision_and_of_its_view() -> None:
    fields: dict[str, Any] = {"approved": True, "by": "ann", "via": "web", "comment": "ok", "time": NOW}
    made = decided(Decision(**fields, args={"a": 1}, remembered=True))
    assert made == decided(DecisionView(**fields, changed_args=True, remembered=True))
    assert (made.verb, made.by) == ("approved", "by ann (web)")
    how = "as a call of the same kind was before it, with changed arguments"
    assert made.text == f"by ann (web), {NOW:%Y-%m-%d %H:%M:%S} UTC, {how}: ok"
    late = decided(Decision(approved=False, time=NOW, source="timeout"))
    assert (late.verb, late.by) == ("denied", "by its time limit")
    assert verdicts(None, Answered(by="ann", time=NOW))[0].text == f"by ann, {NOW:%Y-%m-%d %H:%M:%S} UTC"
    assert verdicts(None, Answered(time=NOW, source="timeout"))[0].by == "by its time limit"


def test_a_value_is_shortened_with_its_whole_length_said() -> None:
    assert shortened({"a": 1}, 100) == ('{"a": 1}', 8)
    assert shortened("x" * 10, 4) == ("xxxx", 10)


@pytest.mark.parametrize(
    ("length", "text"),
    [(0.003, "3 ms"), (0.0949, "95 ms"), (0.0951, "0.1 s"), (0.3, "0.3 s"), (12, "12 s"), (185, "3:05")],
)
def test_a_length_of_time_is_written_short(length: float, text: str) -> None:
    assert seconds(length) == text
