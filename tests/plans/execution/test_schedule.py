"""Every rule of the schedule, one sentence each. What it refuses is tested in `test_schedule_refusals`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from plansurvive.plans.definition.dependencies import dependencies
from plansurvive.plans.errors import IllegalMove
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.run import PlanStatus, Run, Status, StepState
from plansurvive.plans.step_state import Outcome
from tests.nightly import only_nightly
from tests.plans.building import NOW, begun, completed, failed, later, run_of, skipped, statuses, step

Move = Callable[[Schedule], object]


def do(schedule: Schedule, name: str, outcome: Outcome) -> list[str]:
    """Run a step to its end."""
    schedule.start(name, NOW)
    return schedule.settle(name, outcome, NOW)


def test_before_the_plan_begins_every_step_is_pending() -> None:
    assert statuses(run_of(step("a"), step("b", "a"))) == {"a": "pending", "b": "pending"}


def test_a_plan_that_begins_makes_free_steps_ready_and_the_others_blocked() -> None:
    schedule = Schedule(run_of(step("b", "a"), step("a"), step("c")))
    assert schedule.begin(NOW) == ["a", "c"]
    assert statuses(schedule.run) == {"a": "ready", "b": "blocked", "c": "ready"}
    assert (schedule.run.status, schedule.run.started) == (PlanStatus.RUNNING, NOW)


def test_a_plan_may_begin_after_a_review() -> None:
    schedule = Schedule(run_of(step("a")))
    schedule.review()
    assert schedule.run.status is PlanStatus.REVIEW
    assert schedule.begin(NOW) == ["a"]


def test_a_plan_stopped_in_review_starts_nothing_when_begun() -> None:
    schedule = Schedule(run_of(step("a")))
    schedule.stop("cancelled", NOW)
    assert schedule.begin(NOW) == []
    assert schedule.end(NOW, cancelled=True) is PlanStatus.CANCELLED


def test_a_step_waits_for_all_it_depends_on() -> None:
    schedule = begun(step("a"), step("b"), step("c", "a", "b"))
    assert do(schedule, "a", completed()) == []
    assert schedule.open_needs("c") == ["b"]
    assert do(schedule, "b", completed()) == ["c"]


def test_a_step_does_not_wait_for_what_it_does_not_depend_on() -> None:
    schedule = begun(step("slow"), step("a"), step("b", "a"), step("c", "b"))
    schedule.start("slow", NOW)
    assert do(schedule, "a", completed()) == ["b"]
    assert do(schedule, "b", completed()) == ["c"]


def test_steps_that_become_ready_together_come_in_plan_order() -> None:
    schedule = begun(step("z", "a"), step("a"), step("m", "a"), step("b", "a"))
    assert do(schedule, "a", completed()) == ["z", "m", "b"]


def test_a_reference_is_a_dependency_stated_or_not() -> None:
    referring = step("b", args={"text": "$a.x", "more": "see {{c}}"}, when="d.ok && inputs.go")
    assert dependencies(referring) == {"a": True, "c": True, "d": True, "inputs": True}
    assert dependencies(step("b", "a", "c", uses=("a",))) == {"a": True, "c": False}
    assert statuses(begun(step("a"), step("c"), step("d"), referring).run)["b"] == "blocked"


def test_a_price_is_no_dependency_unless_a_step_has_that_name() -> None:
    assert begun(step("a", args={"text": "$5"})).ready == {"a": None}
    assert begun(step("a", args={"text": "$5"}), step("5")).ready == {"5": None}


@pytest.mark.parametrize("outcome", [failed(), skipped("denied", opens=False)], ids=["failed", "denied"])
def test_a_failed_or_denied_step_blocks_its_dependents_for_good_down_the_graph(outcome: Outcome) -> None:
    schedule = begun(step("a"), step("b", "a"), step("c", "b"), step("free"))
    assert do(schedule, "a", outcome) == []
    assert statuses(schedule.run) | {"a": ""} == {"a": "", "b": "blocked", "c": "blocked", "free": "ready"}
    assert schedule.run.steps["b"].permanently_blocked
    assert schedule.run.steps["c"].reason == "'b' is blocked"
    assert schedule.open_needs("c") == ["b"]
    do(schedule, "free", completed())
    assert schedule.idle
    assert schedule.end(NOW) is PlanStatus.PARTIAL


def test_a_step_skipped_by_a_reviewer_or_a_condition_opens_those_that_do_not_use_its_value() -> None:
    schedule = begun(step("a"), step("after", "a"), step("user", uses=("a",)), step("behind", "user"))
    assert schedule.settle("a", skipped("not needed"), NOW) == ["after"]
    assert statuses(schedule.run) == {"a": "skipped", "after": "ready", "user": "blocked", "behind": "blocked"}
    assert schedule.run.steps["user"].reason == "'a' was skipped: not needed"


def test_a_blocked_step_may_be_skipped_and_opens_its_dependents_at_once() -> None:
    schedule = begun(step("a"), step("b", "a"), step("c", "b"))
    assert schedule.settle("b", skipped(), NOW) == ["c"]
    assert do(schedule, "a", completed()) == []


def test_a_plan_of_skipped_and_completed_steps_is_completed() -> None:
    schedule = begun(step("a"), step("b"))
    do(schedule, "a", completed())
    schedule.settle("b", skipped(), NOW)
    assert schedule.end(NOW) is PlanStatus.COMPLETED


@pytest.mark.parametrize("by_default", [False, True])
def test_a_failed_critical_step_stops_the_plan(by_default: bool) -> None:
    fields: dict[str, Any] = {} if by_default else {"critical": True}
    steps = [step("a", **fields), step("b"), step("c", "b"), step("d"), step("e", "a")]
    schedule = begun(*steps, defaults={"critical": by_default})
    schedule.start("b", NOW)
    schedule.ask("d", NOW)
    assert do(schedule, "a", failed()) == []
    assert (list(schedule.ready), list(schedule.awaiting), schedule.running) == ([], [], 1)
    assert schedule.settle("b", completed(), NOW) == [], "what runs may end, nothing more starts"
    assert schedule.end(NOW) is PlanStatus.FAILED
    assert statuses(schedule.run) == {"a": "failed", "b": "completed"} | dict.fromkeys("cde", "blocked")
    assert schedule.run.steps["d"].awaiting is None
    assert all(state.permanently_blocked for name, state in schedule.run.steps.items() if name in "cde")


def test_a_step_that_is_not_critical_may_fail_in_a_plan_whose_steps_are() -> None:
    schedule = begun(step("a", critical=False), step("b"), defaults={"critical": True})
    do(schedule, "a", failed())
    assert list(schedule.ready) == ["b"]
    do(schedule, "b", completed())
    assert schedule.end(NOW) is PlanStatus.PARTIAL


def test_nothing_is_ready_running_or_pending_when_a_plan_ends() -> None:
    schedule = begun(step("a"), step("b"), step("c", "a"))
    schedule.ask("b", NOW, later(60))
    assert schedule.end(NOW, cancelled=True) is PlanStatus.CANCELLED
    assert set(statuses(schedule.run).values()) == {"blocked"}
    assert all(state.reason and not state.deadline for state in schedule.run.steps.values())
    assert (schedule.run.ended, schedule.idle) == (NOW, True)


def test_a_plan_that_never_began_can_end() -> None:
    schedule = Schedule(run_of(step("a"), step("b", "a")))
    assert schedule.end(NOW, cancelled=True) is PlanStatus.CANCELLED
    assert statuses(schedule.run) == {"a": "blocked", "b": "blocked"}


def test_a_ready_step_that_asks_waits_apart_until_it_is_answered() -> None:
    schedule = begun(step("a"), step("b"))
    schedule.ask("a", NOW, later(60))
    state = schedule.run.steps["a"]
    assert (state.status, state.awaiting, state.deadline) == (Status.READY, "approval", later(60))
    assert (list(schedule.ready), list(schedule.awaiting), schedule.idle) == (["b"], ["a"], False)
    schedule.answered("a")
    assert (list(schedule.ready), list(schedule.awaiting)) == (["b", "a"], [])
    assert (state.awaiting, state.deadline) == (None, None)


def test_a_step_that_ran_may_ask_and_is_ready_again() -> None:
    schedule = begun(step("a"))
    schedule.start("a", NOW)
    schedule.ask("a", NOW)
    assert (schedule.running, list(schedule.awaiting)) == (0, ["a"])
    schedule.answered("a")
    assert do(schedule, "a", completed()) == []


def test_an_asking_step_can_be_skipped_or_fail_without_having_run() -> None:
    schedule = begun(step("a"), step("b"))
    schedule.ask("a", NOW)
    schedule.ask("b", NOW)
    schedule.settle("a", skipped(opens=False), NOW)
    schedule.settle("b", failed(), NOW)
    assert (list(schedule.awaiting), schedule.idle) == ([], True)


def test_a_paused_plan_lets_steps_end_and_starts_none() -> None:
    schedule = begun(step("a"), step("b", "a"))
    schedule.start("a", NOW)
    assert schedule.pause(NOW, "paused by ann")
    assert not schedule.pause(NOW, "again")
    assert schedule.settle("a", completed(), NOW) == ["b"]
    with pytest.raises(IllegalMove, match="paused"):
        schedule.start("b", NOW)
    assert schedule.unpause(NOW, "on")
    assert not schedule.unpause(NOW, "again")
    schedule.start("b", NOW)
    assert [entry.kind for entry in schedule.run.log] == ["paused", "unpaused"]


def test_every_move_has_a_number_a_time_and_a_status() -> None:
    schedule = begun(step("a"), step("b", "a"))
    schedule.start("a", later(1))
    schedule.settle("a", completed(), later(2))
    found = [(change.seq, name, change.status.value, change.time) for name, change in changes(schedule.run)]
    assert found == [
        *((1, "a", "ready", NOW), (2, "b", "blocked", NOW), (3, "a", "running", later(1))),
        *((4, "a", "completed", later(2)), (5, "b", "ready", later(2))),
    ]


def changes(run: Run) -> list[tuple[str, Any]]:
    """All changes of a run in the order of their numbers."""
    found = [(name, change) for name, state in run.steps.items() for change in state.changes]
    return sorted(found, key=lambda pair: int(pair[1].seq))


def test_the_counts_follow_every_move() -> None:
    schedule = begun(step("a"), step("b", "a"), step("c"))
    schedule.start("a", NOW)
    assert {status.value: count for status, count in schedule.counts.items() if count} == {
        "running": 1,
        "blocked": 1,
        "ready": 1,
    }


def test_of_a_big_plan_those_that_move_are_shown_first() -> None:
    schedule = begun(*(step(f"s{index}") for index in range(30)))
    do(schedule, "s0", completed())
    schedule.start("s1", NOW)
    schedule.ask("s2", NOW)
    assert schedule.moving(4) == ["s2", "s1", "s3", "s4"]
    assert schedule.moving(100)[-1] == "s0"
    assert Schedule(schedule.run).moving(100) == schedule.moving(100)


def test_a_schedule_made_anew_lists_steps_in_the_order_they_became_ready() -> None:
    schedule = begun(step("late", "a"), step("a"), step("b"), step("asks"), step("asks2"))
    schedule.ask("asks2", NOW)
    schedule.ask("asks", NOW)
    do(schedule, "a", completed())
    again = Schedule(Run.model_validate_json(schedule.run.model_dump_json()))
    assert list(again.ready) == list(schedule.ready) == ["b", "late"]
    assert list(again.awaiting) == list(schedule.awaiting) == ["asks2", "asks"]


class Counting(dict[str, StepState]):
    """Counts the looks at steps; going through all of them is not allowed."""

    looks = 0

    def __getitem__(self, key: str) -> StepState:
        self.looks += 1
        return super().__getitem__(key)

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("a settled step must not cost the whole plan")

    def items(self) -> Any:
        raise AssertionError("a settled step must not cost the whole plan")

    def values(self) -> Any:
        raise AssertionError("a settled step must not cost the whole plan")


@pytest.mark.parametrize("count", [500, only_nightly(9_990)])
def test_a_settled_step_costs_its_dependents_not_the_plan(count: int) -> None:
    names = [f"s{index}" for index in range(count)]
    like = step("s")
    free = [like.model_copy(update={"id": name}) for name in names]
    schedule = begun(*free, *(step(f"t{index}", "s0", "s1") for index in range(10)))
    counting = Counting(schedule.run.steps)
    schedule.run.steps = counting
    looks = []
    for name in names:
        counting.looks = 0
        schedule.start(name, NOW)
        schedule.settle(name, completed(), NOW)
        looks.append(counting.looks)
    assert max(looks[2:]) <= 12, "a step that nothing waits for"
    assert max(looks[:2]) <= 12 + 8 * 10, "a step that ten others wait for"
    assert len(schedule.ready) == 10
