"""How long a plan takes at least."""

from __future__ import annotations

from plansurvive.features.forecast.forecast import needed
from plansurvive.features.forecast.model import ForeseenStep


def run(name: str, seconds: float | None, tool: str = "look") -> ForeseenStep:
    return ForeseenStep(step_id=name, tool=tool, outlook="run", seconds=seconds)


def test_what_follows_a_block_begins_when_all_in_it_has_ended() -> None:
    steps = [run("a", 1.0), run("block", None, ""), run("block.in", 10.0), run("block.in2", 4.0), run("c", 5.0)]
    after = {"block": ["a"], "block.in2": ["block.in"], "c": ["block"]}
    within = {"block.in": "block", "block.in2": "block"}
    assert needed(steps, after, within, 10) == (20.0, 0)


def test_work_is_divided_by_the_steps_at_once() -> None:
    assert needed([run(f"s{number}", 2.0) for number in range(6)], {}, {}, 3) == (4.0, 0)


def test_a_child_plan_counts_with_its_own_time_or_else_with_its_steps() -> None:
    inside = [run("p/x", 3.0), run("p/y", None), run("p/y/deep", 9.0)]
    within = {"p/x": "p", "p/y": "p", "p/y/deep": "p/y"}
    assert needed([run("p", 7.0, "plan"), *inside], {}, within, 10) == (7.0, 0)
    assert needed([run("p", None, "plan"), *inside], {}, within, 10) == (9.0, 0)


def test_steps_without_a_time_are_counted() -> None:
    assert needed([run("a", None), run("b", 1.0)], {}, {}, 10) == (1.0, 1)
    assert needed([run("a", None)], {}, {}, 10) == (None, 1)
    assert needed([], {}, {}, 10) == (0.0, 0)
