"""The deadline of a plan: from when it counts, what it depends on, and whose it is in a child plan."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from plansurvive.plans.activity_io import Facts
from plansurvive.plans.children.starting import options_of
from plansurvive.plans.execution.resume import resumed
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.flow.closing_state import Closing
from plansurvive.plans.guards.deadline import awaited, deadline_of, end, in_words, left
from plansurvive.plans.model import Plan, Step
from plansurvive.plans.run import Options, PlanStatus, Run, run_of, text_of

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
STEP = Step(id="a", tool="work")
MINUTE = timedelta(minutes=1)


def begun(own: float | None = 60.0, **options: object) -> Run:
    run = Run.of(Plan(id="p", steps=[STEP], timeout=own), Options.model_validate(options), Facts(), {})
    Schedule(run).begin(NOON)
    return run


def test_it_counts_from_the_beginning_and_a_draft_has_none() -> None:
    draft = Run.of(Plan(id="p", steps=[STEP], timeout=60.0), Options(), Facts(), {})
    draft.created = NOON - timedelta(days=3)
    assert awaited(draft) is None
    assert awaited(begun()) == NOON + MINUTE
    assert awaited(begun(None)) is None


def test_what_the_person_who_starts_it_says_counts_instead_of_the_plans_own() -> None:
    assert deadline_of(begun(60.0, timeout=120.0)) == NOON + 2 * MINUTE
    assert deadline_of(begun(None, timeout=120.0)) == NOON + 2 * MINUTE


def test_continue_as_new_keeps_it_and_an_edit_moves_it() -> None:
    run = run_of(text_of(begun()))
    assert awaited(run) == NOON + MINUTE
    run.plan = run.plan.model_copy(update={"timeout": 180.0})
    assert awaited(run) == NOON + 3 * MINUTE


@pytest.mark.parametrize(("own", "ends"), [(None, 1), (30.0, 0.5), (600.0, 1)])
def test_a_child_plan_ends_with_its_parent_at_the_latest(own: float | None, ends: float) -> None:
    options = options_of(begun(), STEP, Plan(id="c", steps=[STEP], timeout=own))
    assert deadline_of(begun(own, until=options.until)) == NOON + ends * MINUTE


def test_what_closes_a_plan_has_no_deadline_and_neither_have_its_children() -> None:
    run = begun()
    run.closing = Closing(phase="finally", ends="failed")
    assert awaited(run) is None
    assert options_of(run, STEP, Plan(id="c", steps=[STEP])).until is None


def test_a_plan_that_it_ended_has_failed_and_is_resumed_with_a_new_one() -> None:
    run = begun()
    schedule = Schedule(run)
    schedule.stop(end(run, NOON + MINUTE), NOON + MINUTE)
    assert schedule.end(NOON + MINUTE) is PlanStatus.FAILED
    assert "deadline" in run.stopped
    assert "1 min" in run.stopped
    assert run.log[0].code == "PLAN_TIMEOUT"
    again = resumed(run, "p-r2", NOON + 60 * MINUTE)
    assert not again.timed_out
    Schedule(again).begin(NOON + 90 * MINUTE)
    assert awaited(again) == NOON + 91 * MINUTE


def test_it_says_whose_it_was() -> None:
    assert "parent" in end(begun(600.0, until=NOON + MINUTE), NOON + MINUTE)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        *((0.5, "0.5 s"), (45, "45 s"), (60, "1 min"), (720, "12 min"), (5400, "90 min"), (7200, "2 h")),
        *((259_200, "3 d"), (119.6, "120 s"), (595.8, "9 min 56 s"), (7199.7, "120 min"), (9_000, "2 h 30 min")),
        *((86_399, "24 h"), (172_799, "48 h"), (183_600, "2 d 3 h"), (31_536_000, "365 d")),
    ],
)
def test_spans_are_in_words(seconds: float, words: str) -> None:
    assert in_words(seconds) == words
    assert left(NOON + timedelta(seconds=seconds), NOON) == f"in {words}"
    assert left(NOON, NOON) == "now"
