"""A view kept up to date by events: it says what a fresh view would say, or that one is needed."""

from __future__ import annotations

from typing import Any

from plansurvive.client.cli.follow.progress import Progress
from plansurvive.client.runs import BriefView, EventView
from plansurvive.plans.views.models import ResultView


def event(seq: int, step_id: str, status: str, **more: Any) -> EventView:
    given = {"seq": seq, "time": f"2026-01-01T12:00:{seq:02}Z", "taskId": "p", "stepId": step_id, "status": status}
    return EventView.read(given | more)


def view(**more: Any) -> BriefView:
    steps = [{"id": "a", "tool": "t", "status": "ready"} | more, {"id": "b", "tool": "t", "status": "blocked"}]
    return BriefView.read({
        "id": "p",
        "seq": 2,
        "status": "running",
        "startedAt": None,
        "counts": {"total": 2, "ready": 1, "blocked": 1},
        "steps": steps,
        "pending": [{"stepId": "a", "kind": "approval", "tool": "t"}] if more else [],
    })  # fmt: skip


def test_a_step_moves_with_its_times_and_its_result() -> None:
    progress = Progress(view())
    result = {"ok": True, "duration": 5.0}
    assert progress.apply([event(3, "a", "running"), event(4, "a", "completed", result=result), event(5, "b", "ready")])
    first, second = progress.view.steps
    assert first.started_at
    assert first.ended_at
    assert progress.view.started_at
    assert (first.status, first.started_at.second, first.ended_at.second) == ("completed", 3, 4)
    assert (first.result, second.status) == (ResultView(ok=True, duration=5.0), "ready")
    assert progress.view.counts == {"total": 2, "ready": 1, "blocked": 0, "running": 0, "completed": 1}
    assert (progress.view.seq, progress.view.started_at.second) == (5, 3)


def test_a_view_is_needed_when_a_step_asks() -> None:
    assert not Progress(view()).apply([event(3, "a", "ready")])
    assert not Progress(view()).apply([event(3, "a", "running"), event(4, "a", "ready"), event(5, "b", "ready")])


def test_a_step_that_was_decided_asks_no_more() -> None:
    progress = Progress(view(awaiting="approval"))
    assert progress.apply([event(3, "a", "running")])
    assert (progress.view.pending, progress.view.steps[0].awaiting) == ([], None)


def test_a_line_of_the_log_tells_the_plans_status() -> None:
    progress = Progress(view())
    assert progress.apply([event(3, "", "paused", logs=[{"text": "paused"}])])
    assert progress.view.status == "paused"
    assert progress.apply([event(4, "a", "running", logs=[{"text": "a line about a step"}])])
    assert progress.view.steps[0].status == "ready"
