"""A revised plan in place of one that has begun: what has begun stays, the rest is the answer's."""

from __future__ import annotations

from typing import Any

from plansurvive.features.planning.messages import Regenerate
from plansurvive.features.planning.regeneration import begun, fitted, replaced
from plansurvive.plans.execution.revision import outdated
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.model import Step
from plansurvive.plans.run import Run, as_it_stands
from tests.plans import building
from tests.plans.building import NOW, completed, run_of, statuses, step


def half_done() -> Schedule:
    """`a` is completed, `b` runs, `c` and `d` are yet to come."""
    schedule = building.begun(step("a"), step("b"), step("c", "a", "b"), step("d", "c"))
    schedule.start("a", NOW)
    schedule.settle("a", completed("one"), NOW)
    schedule.start("b", NOW)
    return schedule


def revised(schedule: Schedule, *steps: Step) -> Run:
    """The run with these steps as the LLM's answer."""
    rows, wrong = fitted(schedule.run, steps)
    assert not wrong
    plan = schedule.run.plan.model_copy(update={"steps": rows})
    found = replaced(schedule.run, plan, Regenerate(feedback="better", by="ann"), NOW)
    schedule.review()
    schedule.revise(found.plan, found.skipped, found.unskipped, NOW)
    return schedule.run


def test_what_has_begun_is_put_back_where_the_answer_left_it_out() -> None:
    schedule = half_done()
    before = {name: schedule.run.steps[name].model_dump() for name in ("a", "b")}
    run = revised(schedule, step("c", "b"), step("e", "c", uses=("a",)))
    assert statuses(run) == {"a": "completed", "b": "running", "c": "blocked", "e": "blocked"}
    assert [each.id for each in run.plan.steps] == ["a", "b", "c", "e"]
    assert {name: run.steps[name].model_dump() for name in ("a", "b")} == before


def test_nothing_starts_in_review_and_what_runs_may_end_until_the_plan_goes_on() -> None:
    schedule = half_done()
    started = schedule.run.started
    run = revised(schedule, step("c", "b"), step("e"))
    assert schedule.settle("b", completed("two"), NOW) == ["c"]
    assert run.status == "review"
    schedule.begin(building.later(60))
    assert (run.status, run.started, list(schedule.ready)) == ("running", started, ["e", "c"])


def test_an_answer_that_would_change_what_has_begun_is_told_so() -> None:
    other = {"text": "something else"}
    rows, wrong = fitted(half_done().run, [step("a"), step("b", args=other), step("c", args=other)])
    assert [each.id for each in rows] == ["a", "b", "c"]
    assert [text.split(" and ")[0] for text in wrong] == ["step 'b' is running"]


def test_a_step_that_was_skipped_stays_as_long_as_something_that_began_depends_on_it() -> None:
    schedule = Schedule(run_of(step("a"), step("b", "a"), step("c")))
    schedule.review()
    schedule.revise(schedule.run.plan, {"a": "not today", "c": "nor this"}, (), NOW)
    assert not begun(schedule.run)
    schedule.begin(NOW)
    schedule.start("b", NOW)
    assert list(begun(schedule.run)) == ["a", "b"]


def test_what_only_people_set_stays_with_a_step_and_a_waiver_does_not() -> None:
    fields: dict[str, Any] = {"timeout": 9.0, "queue": "gpu", "notes": "mind the gap", "critical": True}
    run = run_of(step("a", requires_approval=True, **fields), step("b", requires_approval=False, **fields))
    rows, _ = fitted(run, [step("a", "b", queue="evil"), step("b"), step("n", queue="evil")])
    assert [(each.queue, each.timeout, each.critical, each.requires_approval) for each in rows] == [
        ("gpu", 9.0, None, True), ("gpu", 9.0, None, None), (None, None, None, None)
    ]  # fmt: skip
    assert rows[0].depends_on == ["b"]
    other = Step(id="a", tool="read_file", args={"path": "x"})
    assert fitted(run, [other]) == ([other], [])


def test_arguments_an_approver_put_in_are_shown_and_kept() -> None:
    run = run_of(step("a"))
    run.steps["a"].args = {"text": "mine"}
    assert as_it_stands(run).steps[0].args == {"text": "mine"}
    rows, _ = fitted(run, as_it_stands(run).steps)
    assert not outdated(run, run.plan.model_copy(update={"steps": rows}), {"a"})
