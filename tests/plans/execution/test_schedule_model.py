"""The schedule against the naive model: the same answers after every move, whatever the plan and the order."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plansurvive.plans.errors import IllegalMove
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.model import Step
from plansurvive.plans.run import Run
from tests.plans.building import NOW, begun, completed, failed, plan_of, run_of, skipped, statuses, step
from tests.plans.naive import NaiveRun, NaiveStep

OUTCOMES = {
    "completed": completed(1),
    "failed": failed(),
    "skipped": skipped(),
    "denied": skipped("User denied approval", opens=False),
}
BOUNDED = settings(suppress_health_check=list(HealthCheck))


class Move(NamedTuple):
    """One thing that can happen to a run."""

    kind: str
    name: str = ""
    ending: str = ""


@st.composite
def plans(draw: st.DrawFn) -> list[Step]:
    """Valid plans of up to nine steps, in any order of writing."""
    names = [f"s{index}" for index in range(draw(st.integers(1, 9)))]
    steps = []
    for index, name in enumerate(names):
        needs = draw(st.lists(st.sampled_from(names[:index]), unique=True, max_size=3)) if index else []
        uses = tuple(other for other in needs if draw(st.integers(0, 2)) == 0)
        stated = [other for other in needs if other not in uses or draw(st.booleans())]
        steps.append(step(name, *stated, uses=uses, critical=draw(st.sampled_from([None, False, False, True]))))
    return draw(st.permutations(steps))


def naive_of(steps: list[Step]) -> NaiveRun:
    """The model of a run of these steps: needs read off the way they were drawn."""
    found = {}
    for each in steps:
        used = [text.removeprefix("$") for text in each.args["text"]]
        found[each.id] = NaiveStep({name: name in used for name in [*each.depends_on, *used]}, bool(each.critical))
    return NaiveRun(found)


def possible(naive: NaiveRun) -> list[Move]:
    """Every move that may follow."""
    running, asking, ready = naive.recorded("running"), naive.recorded("asking"), sorted(naive.ready())
    moves = [Move("settle", name, ending) for name in running for ending in OUTCOMES]
    moves += [Move("settle", name, ending) for name in [*ready, *asking] for ending in ("failed", "skipped", "denied")]
    moves += [Move("answered", name) for name in asking]
    moves += [Move("unpause")] if naive.paused else [Move("pause"), *(Move("start", name) for name in ready)]
    if not naive.stopped:
        moves += [Move("ask", name) for name in [*ready, *running]]
        moves += [Move("settle", name, ending) for name in skippable(naive) for ending in ("skipped", "denied")]
        moves.append(Move("stop"))
    return moves


def skippable(naive: NaiveRun) -> list[str]:
    """Blocked steps that a reviewer may still skip."""
    return [name for name in naive.steps if naive.status(name) == "blocked" and not naive.is_hopeless(name)]


def impossible(naive: NaiveRun) -> list[Move]:
    """Moves of steps that may not follow."""
    legal = set(possible(naive))
    moves = [Move("start", name) for name in naive.steps]
    moves += [Move("ask", name) for name in naive.steps]
    moves += [Move("settle", name, "completed") for name in naive.steps]
    return [move for move in moves if move not in legal]


def do(schedule: Schedule, move: Move) -> list[str]:
    """Make a move on the real schedule; the steps it made ready."""
    if move.kind == "settle":
        return schedule.settle(move.name, OUTCOMES[move.ending], NOW)
    if move.kind == "answered":
        schedule.answered(move.name)
    elif move.kind in ("start", "ask"):
        getattr(schedule, move.kind)(move.name, NOW)
    elif move.kind == "stop":
        schedule.stop("enough", NOW)
    else:
        getattr(schedule, move.kind)(NOW, "")
    return []


def do_naively(naive: NaiveRun, move: Move) -> None:
    """Make it on the model."""
    if move.kind == "settle":
        naive.settle(move.name, move.ending)
    elif move.kind == "stop":
        naive.stop()
    elif move.kind in ("pause", "unpause"):
        naive.paused = move.kind == "pause"
    else:
        naive.steps[move.name].recorded = {"start": "running", "ask": "asking", "answered": ""}[move.kind]


def compare(schedule: Schedule, naive: NaiveRun) -> None:
    """The same statuses, the same steps ready, asking and running, the same reasons to wait."""
    assert statuses(schedule.run) == {name: naive.status(name) for name in naive.steps}
    assert set(schedule.ready) == naive.ready()
    assert set(schedule.awaiting) == set(naive.recorded("asking"))
    assert schedule.running == len(naive.recorded("running"))
    for name in naive.steps:
        blockers = {other for other, uses in naive.steps[name].needs.items() if not naive.opens(other, uses)}
        assert set(schedule.open_needs(name)) == blockers


def reloaded(schedule: Schedule) -> Schedule:
    """The schedule another run of the workflow makes from what it was given."""
    return Schedule(Run.model_validate_json(schedule.run.model_dump_json()))


@BOUNDED
@given(steps=plans(), data=st.data())
def test_the_schedule_agrees_with_the_naive_model_after_every_move(steps: list[Step], data: st.DataObject) -> None:
    schedule, naive = Schedule(run_of(*steps)), naive_of(steps)
    schedule.begin(NOW)
    compare(schedule, naive)
    for _ in range(data.draw(st.integers(0, 40))):
        moves = possible(naive)
        move = data.draw(st.sampled_from(moves))
        before = naive.ready()
        released = do(schedule, move)
        do_naively(naive, move)
        compare(schedule, naive)
        if move.kind == "settle":
            assert set(released) == naive.ready() - before
        if data.draw(st.integers(0, 9)) == 0:
            schedule = reloaded(schedule)
            compare(schedule, naive)
    finish(schedule, naive, data)


def finish(schedule: Schedule, naive: NaiveRun, data: st.DataObject) -> None:
    """Let everything end, and the plan with it."""
    if naive.paused:
        schedule.unpause(NOW, "")
        naive.paused = False
    while active := [*naive.recorded("running"), *naive.recorded("asking"), *sorted(naive.ready())]:
        name = active[0]
        if naive.steps[name].recorded != "running" and not naive.stopped:
            for move in [Move("answered", name)] * (naive.steps[name].recorded == "asking") + [Move("start", name)]:
                do(schedule, move)
                do_naively(naive, move)
        move = Move("settle", name, data.draw(st.sampled_from(["completed", "completed", "failed", "skipped"])))
        do(schedule, move)
        do_naively(naive, move)
        compare(schedule, naive)
    assert schedule.idle
    cancelled = data.draw(st.integers(0, 4)) == 0
    status, naive.ended = schedule.end(NOW, cancelled), True
    assert status.value == naive.plan_status(cancelled)
    assert statuses(schedule.run) == {name: naive.status(name) for name in naive.steps}
    assert not {"pending", "ready", "running"} & set(statuses(schedule.run).values())


@BOUNDED
@given(steps=plans(), data=st.data())
def test_what_the_model_forbids_the_schedule_refuses_and_nothing_changes(
    steps: list[Step], data: st.DataObject
) -> None:
    schedule, naive = Schedule(run_of(*steps)), naive_of(steps)
    schedule.begin(NOW)
    for _ in range(data.draw(st.integers(0, 15))):
        move = data.draw(st.sampled_from(possible(naive)))
        do(schedule, move)
        do_naively(naive, move)
    forbidden = impossible(naive)
    before = schedule.run.model_dump_json()
    for move in forbidden:
        try:
            do(schedule, move)
        except IllegalMove:
            continue
        raise AssertionError(f"{move} was accepted")
    assert schedule.run.model_dump_json() == before
    compare(schedule, naive)


def test_a_plan_stops_its_steps_in_plan_order_before_and_after_continue_as_new() -> None:
    first = begun(step("s0"), step("s1"))
    for move in (Move("ask", "s0"), Move("ask", "s1"), Move("answered", "s1"), Move("answered", "s0")):
        do(first, move)
    second = reloaded(first)
    assert list(first.ready) == ["s1", "s0"] != list(second.ready)
    for schedule in (first, second):
        do(schedule, Move("stop"))
    assert second.run == first.run
    assert [first.run.steps[name].changes[-1].seq for name in ("s0", "s1")] == [6, 7]


@BOUNDED
@given(steps=plans(), data=st.data())
def test_a_reloaded_schedule_continues_as_the_old_one_would_have(steps: list[Step], data: st.DataObject) -> None:
    first, naive = Schedule(run_of(*steps)), naive_of(steps)
    first.begin(NOW)
    second = first
    for _ in range(data.draw(st.integers(1, 25))):
        move = data.draw(st.sampled_from(possible(naive)))
        second = reloaded(second)
        do(first, move)
        do(second, move)
        do_naively(naive, move)
        assert second.run == first.run
        assert set(second.ready) == set(first.ready)
        assert list(second.awaiting) == list(first.awaiting)
    assert plan_of(*steps) == first.run.plan
