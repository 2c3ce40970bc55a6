"""What differs between two plans: the change log and clients tell the same."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plansurvive.client.differences.plan_diff import plan_diff
from plansurvive.plans.change_log import differences, of_approver
from plansurvive.plans.model import Plan, Step
from plansurvive.plans.plan_diff import field_differences, step_differences

NAMES = st.lists(st.sampled_from("abcdefg"), unique=True, max_size=7)


def plan(names: list[str], **args: Any) -> Plan:
    return Plan(steps=[Step(id=name, tool="write_file", args={"path": name, **args}) for name in names])


def test_null_is_another_value_than_none_at_all() -> None:
    assert [path for path, _, _ in field_differences({"a": None}, {})] == ["a"]
    assert differences(plan(["a"]), plan(["a"], content=None)) == ["~ a.args.content: none -> null"]


@pytest.mark.parametrize(("was", "now"), [(1, True), (0, False), (1, 1.0), ([1], [True]), ({"a": 0}, {"a": False})])
def test_numbers_and_truth_values_are_told_apart_although_python_holds_them_equal(was: object, now: object) -> None:
    old, new = plan(["a"], content=was), plan(["a"], content=now)
    (line,) = differences(old, new)
    assert line.startswith("~ a.args.content: ")
    assert [field.path for field in plan_diff(old, new).steps[0].fields] == ["args.content"]
    by_approver = of_approver(old.steps[0], new.steps[0], "", version=2, by="ann", time=datetime.now(UTC), reason="")
    assert by_approver.ops == ["set a args.content"]


def test_the_order_of_names_is_no_difference() -> None:
    old, new = plan(["a"], content={"x": 1, "y": 2}), plan(["a"], content={"y": 2, "x": 1})
    assert differences(old, new) == []
    assert plan_diff(old, new).is_empty


@given(NAMES, NAMES, st.booleans())
def test_the_change_log_and_clients_name_the_same_steps(old: list[str], new: list[str], is_other: bool) -> None:
    before, after = plan(old), plan(new, **({"content": "x"} if is_other else {}))
    shown = plan_diff(before, after)
    lines = differences(before, after)
    marks = {"added": "+ ", "removed": "- ", "changed": "~ "}
    for each in shown.steps:
        if each.kind != "moved":
            assert any(line.startswith(f"{marks[each.kind]}{each.step_id}") for line in lines)
    assert any(line.startswith("order: ") for line in lines) == any(each.moved for each in shown.steps)
    assert (lines == []) == shown.is_empty


def test_of_twenty_thousand_new_steps_each_names_the_one_before_it() -> None:
    names = [f"s{number}" for number in range(20_000)]
    steps = dict(zip(names, plan(names).steps, strict=True))
    found = list(step_differences({}, steps))
    assert [each.after for each in found] == [None, *names[:-1]]
