"""ARCHITECTURE.md draws the moves that the schedule enforces, all of them and no others."""

from __future__ import annotations

import pytest

from plansurvive.plans.errors import IllegalMove
from plansurvive.plans.execution.schedule import Schedule, conclude
from plansurvive.plans.run import DONE, ENDED, PlanStatus, Status
from plansurvive.plans.run.transitions import PLAN_MOVES, STEP_MOVES
from scripts.state_diagram import BEGIN, DOCUMENT, END, diagram, states, written
from tests.plans.building import NOW, begun, run_of, step


def test_the_document_draws_the_moves_as_they_are() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert written(text) == text, "run `python scripts/state_diagram.py`"


def test_a_move_that_is_missing_from_the_drawing_is_seen() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    line = "    ready --> running: started\n"
    assert line in text
    assert written(text.replace(line, "")) == text


def test_a_document_without_the_markers_is_refused() -> None:
    with pytest.raises(ValueError, match="states: begin"):
        written("# Architecture\n")
    assert written(f"a\n{BEGIN}\nold\n{END}\nb") == f"a\n{BEGIN}\n{states()}\n{END}\nb"


def test_every_status_is_drawn() -> None:
    for status in (*Status, *PlanStatus):
        assert f" {status.value}" in states()


def test_a_diagram_has_a_line_for_each_move() -> None:
    drawn = diagram({Status.PENDING: {Status.READY: "it begins"}}, Status.PENDING, [Status.READY])
    assert drawn.splitlines()[2:-1] == [
        "    [*] --> pending",
        "    pending --> ready: it begins",
        "    ready --> [*]",
    ]


def test_a_finished_step_moves_only_where_a_skip_is_taken_back() -> None:
    moves = {status: set(others) for status, others in STEP_MOVES.items() if status in DONE}
    assert moves == {Status.SKIPPED: {Status.PENDING}}


@pytest.mark.parametrize("status", sorted(PlanStatus))
@pytest.mark.parametrize("to", sorted(ENDED))
def test_an_agents_run_ends_by_a_legal_move_or_not_at_all(status: PlanStatus, to: PlanStatus) -> None:
    run = run_of(step("a")).model_copy(update={"status": status})
    if to is status or to in PLAN_MOVES.get(status, ()):
        conclude(run, to, "enough", NOW)
        assert (run.status, run.ended, run.stopped) == (to, NOW, "enough")
        return
    before = run.model_dump_json()
    with pytest.raises(IllegalMove):
        conclude(run, to, "enough", NOW)
    assert run.model_dump_json() == before


@pytest.mark.parametrize("status", sorted(set(PlanStatus) - ENDED))
def test_an_agents_run_does_not_end_as_something_that_goes_on(status: PlanStatus) -> None:
    run = begun(step("a")).run
    with pytest.raises(IllegalMove):
        conclude(run, status, "", NOW)
    assert run.status is PlanStatus.RUNNING


@pytest.mark.parametrize("status", sorted(ENDED))
def test_a_plan_that_has_ended_stays_so(status: PlanStatus) -> None:
    schedule = Schedule(run_of(step("a")).model_copy(update={"status": status}))
    with pytest.raises(IllegalMove):
        schedule.end(NOW, cancelled=True)
    assert schedule.run.status is status
