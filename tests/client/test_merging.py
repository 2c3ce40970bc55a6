"""A watcher of a big plan asks only for what may have changed: put together, that is the plan as it is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from plansurvive.client.runs import BriefView
from plansurvive.client.watchers.merging import BIG, asked_of, merged
from plansurvive.plans.errors import Refused
from plansurvive.plans.run import Run, Status
from plansurvive.plans.views import queries
from plansurvive.plans.views.queries import BRIEF, brief_since
from tests.nightly import only_nightly
from tests.plans.building import NOW, begun, completed, step
from tests.plans.test_decided_calls_random import World


def read(run: Run, argument: Any) -> BriefView:
    """The answer of a worker as a client reads it."""
    return BriefView.read(json.dumps(queries.view(run, [argument])).encode())


@pytest.mark.parametrize("count", [15, only_nightly(2_000)])
def test_what_changed_and_what_was_known_are_the_whole_plan_after_whatever_happens(count: int) -> None:
    parts = 0
    for seed in range(count):
        world = World(seed)
        known = read(world.run, BRIEF)
        for _ in range(40):
            world.act()
            found = read(world.run, brief_since(known.seq, known.version))
            parts += found.since is not None
            whole = read(world.run, BRIEF)
            now = merged(known, found)
            assert now is not None
            assert now.model_dump() == whole.model_dump()
            known = now
    assert parts > count * 10


@pytest.mark.slow
@pytest.mark.in_turn
def test_one_change_of_a_plan_of_thousands_of_steps_is_one_step_to_read() -> None:
    schedule = begun(*(step(f"s{number}") for number in range(2_122)))
    known = read(schedule.run, BRIEF)
    for name in ("s7", "s2000"):
        schedule.start(name, NOW)
        schedule.settle(name, completed(), NOW)
        answer = queries.view(schedule.run, [asked_of(known)])
        assert [each["id"] for each in answer["steps"]] == [name]
        assert len(json.dumps(answer)) < 1_000
        now = merged(known, BriefView.read(answer))
        assert now is not None
        assert next(each for each in now.steps if each.id == name).status is Status.COMPLETED
        assert sum(had is each for had, each in zip(known.steps, now.steps, strict=True)) == 2_121
        known = now


def test_a_plan_is_read_whole_when_what_changed_does_not_say_it_all() -> None:
    schedule = begun(*(step(f"s{number}") for number in range(BIG)))
    whole = read(schedule.run, BRIEF)
    assert asked_of(None) == asked_of(whole.model_copy(update={"steps": whole.steps[1:]})) == BRIEF
    for since, version in ((0, 1), (whole.seq + 1, 1), (whole.seq, 2)):
        assert read(schedule.run, brief_since(since, version)) == whole
    part = read(schedule.run, brief_since(whole.seq, 1))
    assert part.since == whole.seq
    assert merged(None, part) is None
    assert merged(whole.model_copy(update={"seq": 1}), part) is None
    assert merged(whole.model_copy(update={"steps": []}), part.model_copy(update={"steps": whole.steps[:1]})) is None


def test_a_malformed_question_is_refused() -> None:
    with pytest.raises(Refused, match="since"):
        queries.view(begun(step("a")).run, [{"brief": True, "since": -1}])
