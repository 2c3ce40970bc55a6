"""The time line: attempts, waiting for a person, groups, and texts that try to be more than texts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from plansurvive.apps.web.common.rendering import environment
from plansurvive.apps.web.graph.gantt import ROWS, TimeLine, time_line
from tests.apps.web.graph.views import step, view

BEGAN = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)


def at(seconds: float) -> str:
    """A time so long after the plan began."""
    return (BEGAN + timedelta(seconds=seconds)).isoformat()


def ran(name: str, since: float, until: float | None, needs: list[str] | None = None, **fields: Any) -> dict[str, Any]:
    ended = {"endedAt": at(until)} if until is not None else {}
    status = "running" if until is None else "completed"
    return step(name, needs, **({"status": status, "startedAt": at(since)} | ended | fields))


def drawn(steps: list[dict[str, Any]], now: float = 100, **fields: Any) -> TimeLine:
    found = time_line(view(steps, startedAt=at(0), **fields), BEGAN + timedelta(seconds=now))
    assert found is not None
    return found


def test_bars_are_shares_of_the_time_the_plan_took() -> None:
    found = drawn([ran("a", 0, 25), ran("b", 25, 100, ["a"])], status="completed", endedAt=at(100))
    assert [[(bar.x, bar.width) for bar in row.bars] for row in found.rows] == [[(0.0, 25.0)], [(25.0, 75.0)]]
    assert (found.now, found.length) == (None, 100_000)
    assert [tick.text for tick in found.ticks] == ["0 s", "30 s", "1:00", "1:30"]


def test_waiting_for_a_person_is_told_from_running() -> None:
    decision = {"approved": True, "by": "ann", "time": at(60)}
    steps = [ran("a", 0, 20), ran("b", 60, 80, ["a"], decision=decision), step("c", ["b"], awaiting="approval")]
    rows = drawn(steps, pending=[{"stepId": "c", "kind": "approval", "tool": "task", "since": at(80)}]).rows
    assert [bar.look for bar in rows[1].bars] == ["wait", "completed"]
    assert rows[1].bars[0].says == "waited 40 s for ann"
    (waits,) = rows[2].bars
    assert (waits.look, waits.runs) == ("wait", True)


def test_what_was_checked_before_it_asked_has_not_run_meanwhile() -> None:
    asks = step("a", status="ready", awaiting="approval", startedAt=at(1))
    decision = {"approved": True, "by": "ann", "time": at(60)}
    decided = ran("b", 1, 70, decision=decision)
    rows = drawn([asks, decided], pending=[{"stepId": "a", "kind": "approval", "tool": "task", "since": at(1)}]).rows
    assert [bar.look for bar in rows[0].bars] == ["wait"]
    assert [(bar.look, bar.x, bar.width) for bar in rows[1].bars] == [
        ("wait", 0.0, 57.692),
        ("completed", 57.692, 9.616),
    ]


def test_each_attempt_is_a_bar_of_its_own() -> None:
    calls = [
        {
            "tool": "task",
            "args": {},
            "result": "",
            "timestamp": at(0),
            "attempt": 1,
            "duration": 10_000,
            "code": "TIMEOUT",
        },
        {"tool": "task", "args": {}, "result": "", "timestamp": at(20), "attempt": 2, "duration": 5_000},
    ]
    (row,) = drawn([ran("a", 0, 25)], step_tool_history={"0": calls}).rows
    assert [bar.look for bar in row.bars] == ["completed", "attempt is-failed", "attempt is-completed"]
    assert row.bars[1].says == "attempt 1: TIMEOUT, 10 s"


def test_a_plan_of_thousands_of_steps_has_a_bar_for_each_group() -> None:
    steps = [ran(f"get_{number}", number / 100, 50) for number in range(2_000)]
    found = drawn(steps)
    assert 1 <= len(found.rows) <= ROWS
    assert found.rows[0].bars[0].says.startswith("2,000 of 2,000 done")


def test_a_plan_that_has_not_begun_has_no_time_line() -> None:
    assert time_line(view([step("a")]), BEGAN) is None


def test_what_plans_contain_is_text_in_the_picture() -> None:
    name = "<script>x</script>\u202e"
    found = drawn([ran("a", 0, 5, description=name), ran("b", 0, None)])
    text = environment().get_template("_gantt.html").render(plan="p/../x", time_line=found)
    assert "<script>" not in text
    assert "\u202e" not in text
    assert "&lt;script&gt;" in text
    assert "style=" not in text
    assert text.count("data-runs") == 2
