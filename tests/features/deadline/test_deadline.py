"""The deadline of a plan: from when it counts, what it depends on, and whose it is in a child plan."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from plansurvive.features.deadline.model import Within
from plansurvive.features.deadline.rules import RULES, awaited, deadline_of, end
from plansurvive.plans.activity_io import Facts
from plansurvive.plans.execution.resume import resumed
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.flow.closing_state import Closing
from plansurvive.plans.model import Plan, Step
from plansurvive.plans.run import Options, PlanStatus, Run, run_of, text_of
from plansurvive.plans.run.feature import RuleSet

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
STEP = Step(id="a", tool="work")
MINUTE = timedelta(minutes=1)


def begun(own: float | None = 60.0, until: datetime | None = None, timeout: float | None = None) -> Run:
    parts = {"deadline": Within(until=until)} if until else {}
    run = Run.of(Plan(id="p", steps=[STEP], timeout=own), Options(timeout=timeout, parts=parts), Facts(), {})
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
    child = begun(own)
    child.options = Options(parts=RuleSet([RULES]).parts_for_child(begun(), STEP, None))
    assert deadline_of(child) == NOON + ends * MINUTE


def test_what_closes_a_plan_has_no_deadline_and_neither_have_its_children() -> None:
    run = begun()
    run.closing = Closing(phase="finally", ends="failed")
    assert awaited(run) is None
    assert RuleSet([RULES]).parts_for_child(run, STEP, None) == {}


def test_an_edited_timeout_counts_instead_of_that_of_the_start_and_another_edit_changes_nothing() -> None:
    run = begun(60.0, timeout=120.0)
    before = run.plan
    run.plan = before.model_copy(update={"title": "another"})
    RuleSet([RULES]).edited(run, before)
    assert deadline_of(run) == NOON + 2 * MINUTE
    run.plan = before.model_copy(update={"timeout": 180.0})
    RuleSet([RULES]).edited(run, before)
    assert deadline_of(run) == NOON + 3 * MINUTE


def test_a_plan_that_it_ended_has_failed_and_is_resumed_with_a_new_one() -> None:
    run = begun()
    schedule = Schedule(run)
    schedule.stop(end(run, NOON + MINUTE), NOON + MINUTE)
    assert schedule.end(NOON + MINUTE) is PlanStatus.FAILED
    assert "deadline" in run.stopped
    assert "1 min" in run.stopped
    assert run.log[0].code == "PLAN_TIMEOUT"
    again = resumed(run, "p-r2", NOON + 60 * MINUTE)
    assert not again.failed_as
    Schedule(again).begin(NOON + 90 * MINUTE)
    assert awaited(again) == NOON + 91 * MINUTE


def test_it_says_whose_it_was() -> None:
    assert "parent" in end(begun(600.0, until=NOON + MINUTE), NOON + MINUTE)
