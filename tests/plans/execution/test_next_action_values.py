"""The values a step may use: inline, by reference, or not at all."""

from __future__ import annotations

import pytest

from plansurvive.plans.activity_io import Facts
from plansurvive.plans.errors import BadExpression
from plansurvive.plans.large_value import LargeValue
from plansurvive.plans.run import Options, Run
from plansurvive.plans.run.step_call import StepValues, size_of
from tests.plans.building import NOW, begun, completed, failed, plan_of, skipped, step

LARGE = LargeValue(sha256="00", bytes=9_000, preview="x")


def example() -> Run:
    schedule = begun(step("a"), step("null"), step("bad"), step("not"), step("big"), step("waits"))
    for name, outcome in {"a": completed({"x": 1}), "null": completed(), "bad": failed(), "big": completed()}.items():
        schedule.start(name, NOW)
        schedule.settle(name, outcome, NOW)
    schedule.settle("not", skipped(), NOW)
    big = schedule.run.steps["big"]
    assert big.result is not None
    big.result = big.result.model_copy(update={"large": LARGE})
    return schedule.run


def test_only_completed_steps_have_a_value() -> None:
    values = StepValues(example(), ["a", "null", "bad", "not", "big", "waits", "nobody"])
    assert values.inline == {"a": {"x": 1}, "null": None}
    assert values.large == {"big": LARGE}


def test_inputs_are_a_value_where_the_plan_has_some() -> None:
    plan = plan_of(step("a"), inputs={"who": {"default": "ann"}})
    run = Run.of(plan, Options(), Facts(), {"who": "bob"})
    assert StepValues(run, []).inline == {"inputs": {"who": "bob"}}
    assert StepValues(example(), []).inline == {}


def test_a_condition_may_not_use_a_value_kept_elsewhere_and_may_ignore_it() -> None:
    values = StepValues(example(), ["a", "big"])
    assert values.loaded("a.x == `1`") == {"a": {"x": 1}}
    with pytest.raises(BadExpression, match="'big' has 9000 bytes, too large"):
        values.loaded("a.x && big.y")


def test_the_size_of_arguments_is_that_of_their_texts() -> None:
    assert size_of({"a": "x" * 100, "b": ["y" * 50, 5]}) == 150 + 64
