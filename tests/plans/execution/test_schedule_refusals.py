"""What the schedule refuses: an illegal move raises, and leaves the run as it was."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from plansurvive.plans.errors import IllegalMove
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.run import Status
from plansurvive.plans.step_state import Outcome
from tests.plans.building import NOW, begun, completed, failed, run_of, skipped, step

Move = Callable[[Schedule], object]


def do(schedule: Schedule, name: str, outcome: Outcome) -> None:
    """Run a step to its end."""
    schedule.start(name, NOW)
    schedule.settle(name, outcome, NOW)


def running(*moves: Move) -> Schedule:
    """A plan in which `run` runs, `ready` is ready, `asks` asks, `done` is done, `late` is blocked, `dead` for good."""
    schedule = begun(
        *(step("run"), step("ready"), step("asks"), step("done"), step("late", "run"), step("bad"), step("dead", "bad"))
    )
    schedule.start("run", NOW)
    schedule.ask("asks", NOW)
    do(schedule, "done", completed())
    do(schedule, "bad", failed())
    for move in moves:
        move(schedule)
    return schedule


def ended() -> Schedule:
    schedule = begun(step("a"), step("b"))
    do(schedule, "a", completed())
    schedule.end(NOW)
    return schedule


def pending() -> Schedule:
    return Schedule(run_of(step("a"), step("b", "a")))


ILLEGAL: list[tuple[Callable[[], Schedule], Move]] = [
    (pending, lambda s: s.start("a", NOW)),
    (pending, lambda s: s.ask("a", NOW)),
    (pending, lambda s: s.settle("a", completed(), NOW)),
    (pending, lambda s: s.settle("a", skipped(), NOW)),
    (running, lambda s: s.begin(NOW)),
    (running, lambda s: s.end(NOW)),
    (running, lambda s: s.start("run", NOW)),
    (running, lambda s: s.start("asks", NOW)),
    (running, lambda s: s.start("done", NOW)),
    (running, lambda s: s.start("late", NOW)),
    (running, lambda s: s.start("dead", NOW)),
    (running, lambda s: s.start("nobody", NOW)),
    (running, lambda s: s.ask("asks", NOW)),
    (running, lambda s: s.ask("done", NOW)),
    (running, lambda s: s.ask("late", NOW)),
    (running, lambda s: s.ask("nobody", NOW)),
    (running, lambda s: s.settle("ready", completed(), NOW)),
    (running, lambda s: s.settle("asks", completed(), NOW)),
    (running, lambda s: s.settle("late", completed(), NOW)),
    (running, lambda s: s.settle("late", failed(), NOW)),
    (running, lambda s: s.settle("done", completed(), NOW)),
    (running, lambda s: s.settle("bad", completed(), NOW)),
    (running, lambda s: s.settle("dead", skipped(), NOW)),
    (running, lambda s: s.settle("nobody", completed(), NOW)),
    (running, lambda s: s.settle("run", completed()._replace(status=Status.READY), NOW)),
    (running, lambda s: s.settle("ready", completed()._replace(status=Status.RUNNING), NOW)),
    (running, lambda s: s.settle("ready", completed()._replace(status=Status.BLOCKED), NOW)),
    (lambda: running(lambda s: s.pause(NOW, "")), lambda s: s.start("ready", NOW)),
    (lambda: running(lambda s: s.review()), lambda s: s.start("ready", NOW)),
    (lambda: running(lambda s: s.review()), lambda s: s.review()),
    (lambda: running(lambda s: s.stop("no", NOW)), lambda s: s.start("ready", NOW)),
    (lambda: running(lambda s: s.stop("no", NOW)), lambda s: s.ask("run", NOW)),
    (ended, lambda s: s.begin(NOW)),
    (ended, lambda s: s.review()),
    (ended, lambda s: s.end(NOW)),
    (ended, lambda s: s.start("b", NOW)),
    (ended, lambda s: s.settle("b", skipped(), NOW)),
]


@pytest.mark.parametrize(("situation", "move"), ILLEGAL)
def test_an_illegal_move_raises_and_leaves_the_run_as_it_was(situation: Callable[[], Schedule], move: Move) -> None:
    schedule = situation()
    before, lists = schedule.run.model_dump(), [*schedule.ready, *schedule.awaiting, *schedule.moving(99)]
    counts = dict(schedule.counts)
    with pytest.raises(IllegalMove) as caught:
        move(schedule)
    assert caught.value.code == "ILLEGAL_MOVE"
    assert schedule.run.model_dump() == before
    assert [*schedule.ready, *schedule.awaiting, *schedule.moving(99)] == lists
    assert {key: count for key, count in schedule.counts.items() if count} == {k: c for k, c in counts.items() if c}


@pytest.mark.parametrize(
    "move",
    [
        lambda s: s.stop("again", NOW),
        lambda s: s.pause(NOW, ""),
        lambda s: s.unpause(NOW, ""),
        lambda s: s.answered("b"),
        lambda s: s.answered("nobody"),
    ],
)
def test_what_has_nothing_to_change_changes_nothing(move: Move) -> None:
    schedule = ended()
    before = schedule.run.model_dump()
    move(schedule)
    assert schedule.run.model_dump() == before
