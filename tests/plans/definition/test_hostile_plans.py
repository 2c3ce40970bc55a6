"""Checking a plan takes time proportional to its size, whatever it consists of: nothing quadratic, no costly hint."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from plansurvive.activities.tools.registry import builtin_tools
from plansurvive.client.plan_file import PlanFile, check
from plansurvive.plans.definition.near_names import ALLOWANCE, MIN_COST, Hints
from plansurvive.plans.definition.parsing import MAX_FOUND, Unreadable, parse_json
from tests.kit.growth import cpu, growth
from tests.nightly import sampled
from tests.plans.definition.hostile_plans import SHAPES
from tests.plans.expressions import quadratic_quoting

TOOLS = {name: tool.spec for name, tool in builtin_tools().items()}
WORST = ["interpreters", "insertions", "unknown dependencies", "cycles behind a tail"]


def checked(text: str) -> int:
    """Check the text of a plan as `plan check` does; the number of problems."""
    try:
        data = parse_json(text)
    except Unreadable:
        return 1
    found = check(data, TOOLS)[1]
    file = PlanFile("plan.json", text, data)
    return sum(1 for problem in found if file.line(problem) is not None or problem.message)


def of_check(shape: str) -> Callable[[int], Callable[[], object]]:
    """The check of a plan of this shape."""

    def sized(size: int) -> Callable[[], object]:
        text = SHAPES[shape](size)
        return lambda: checked(text)

    return sized


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.parametrize("shape", WORST)
def test_a_check_takes_time_proportional_to_the_plan(shape: str) -> None:
    assert growth(of_check(shape), 30_000) < 10


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_a_check_of_each_shape_takes_at_most_two_seconds_per_megabyte(shape: str) -> None:
    text = SHAPES[shape](1_000_000)
    assert cpu(lambda: checked(text)) < 2 * max(len(text) / 1_000_000, 0.5)  # it is under 1 on an idle machine
    assert growth(of_check(shape), 500_000) < 6


@pytest.mark.slow
def test_control_the_measure_finds_a_quadratic_check() -> None:
    def sized(size: int) -> Callable[[], object]:
        literals = ["sh " * (size // 3), ""]
        return lambda: quadratic_quoting.join_shell(literals, ["x"])

    assert growth(sized, 5_000) > 10


@pytest.mark.parametrize("shape", ["unknown dependencies", "unknown insertions", "wrong types", "unknown fields"])
def test_the_number_of_problems_is_bounded_and_the_rest_is_mentioned(shape: str) -> None:
    data = parse_json(SHAPES[shape](100_000))
    found = check(data, TOOLS)[1]
    assert MAX_FOUND < len(found) < 15_000
    assert any(problem.code == "MORE_PROBLEMS" for problem in found)


def test_warnings_alone_do_not_end_the_check() -> None:
    steps = [{"id": f"{case}{n}", "tool": "sleep", "args": {"seconds": 1}} for n in range(2_001) for case in "aA"]
    found = check({"steps": [*steps, {"id": "last", "tool": "nonsense"}]}, TOOLS)[1]
    assert len(found) == 2_002 > MAX_FOUND
    assert [problem.step_id for problem in found if problem.severity == "error"] == ["last"]


def test_hints_end_when_their_allowance_is_used_up() -> None:
    hints, known = Hints(), ["alpha", "beta"]
    found = [hints.near("alpah", known) for _ in range(ALLOWANCE // MIN_COST + 5)]
    assert found == ["alpha"] * (ALLOWANCE // MIN_COST) + [""] * 5
    assert Hints().near("x" * 128, ["x" * 127 + str(n % 10) for n in range(1_000)]) == ""


@pytest.mark.parametrize("seed", sampled(range(12), 1))
def test_lines_of_steps_are_found_in_one_pass(seed: int) -> None:
    text = "\n".join(["{", '"steps": [', *(f'{{"id": "s{n}", "tool": "x"}},' for n in range(50 + seed)), "]}"])
    file = PlanFile("plan.json", text, None)
    found = check({"steps": [{"id": f"s{n}", "tool": "x"} for n in range(50)]}, TOOLS)[1]
    assert [file.line(problem) for problem in found] == list(range(3, 53))
