"""How a loop with `mode: plans` is split, and how many of its items are in progress."""

from __future__ import annotations

import pytest

from plansurvive.plans.definition.checks.validation import problems
from plansurvive.plans.definition.parsing import read_plan
from plansurvive.plans.editing.apply_edits import revise
from plansurvive.plans.editing.edits import Edits
from plansurvive.plans.errors import BadReference, Refused
from plansurvive.plans.flow.batches.split import MAX_BATCHED, batch_key, bounds, units_of, window_of
from plansurvive.plans.flow.opened import Opened
from plansurvive.plans.flow.progress import items_of
from plansurvive.plans.model import ForEach, Plan
from tests.plans.building import NOW, TOOLS, begun
from tests.plans.editing.changing import setting
from tests.plans.flow.player import note, plan


def rule(**fields: object) -> ForEach:
    return ForEach.model_validate({"items": "list", "mode": "plans", **fields})


def test_a_list_is_split_into_batches_of_the_size_given_and_the_last_is_smaller() -> None:
    each = rule(batch=3)
    assert units_of(each, 7) == 3
    assert [batch_key(*bounds(each, number, 7)) for number in range(3)] == ["0..2", "3..5", "6..6"]
    assert units_of(rule(), 250) == 3


@pytest.mark.parametrize("batch", [1, 7, 100])
@pytest.mark.parametrize("most", [1, 2, 5, 64, 100])
def test_child_plans_together_never_have_more_items_in_progress_than_the_window(batch: int, most: int) -> None:
    window = window_of(rule(batch=batch, maxParallel=most), 100)
    assert 1 <= window.plans * window.items <= most


def test_a_list_of_more_items_than_one_plan_runs_is_accepted_up_to_its_own_limit() -> None:
    assert len(items_of(rule(), {"list": list(range(20_001))}).items or []) == 20_001
    with pytest.raises(BadReference, match="100000 with `mode: plans`"):
        items_of(rule(), {"list": [0] * (MAX_BATCHED + 1)})


def test_undo_inside_of_items_in_child_plans_is_refused_by_check() -> None:
    tool = next(iter(TOOLS))
    step = {"id": "each", "forEach": {"items": [1], "mode": "plans"}, "tool": tool, "undo": {"tool": tool}}
    read = read_plan({"steps": [step]})
    assert isinstance(read, Plan)
    assert any("`undo` is not carried out" in each.message for each in problems(read, TOOLS))


def test_a_batch_is_not_edited_and_the_refusal_says_where_its_items_are() -> None:
    loop = {"id": "each", "forEach": {"items": [1, 2, 3], "mode": "plans", "batch": 2}, "steps": [note("work", "x")]}
    schedule = begun(*plan(loop).plan.steps)
    schedule.start("each", NOW)
    schedule.open("each", Opened(items=[1, 2, 3]), NOW)
    schedule.open_next(64, NOW)
    place = {"after": "each[0..1]", "step": note("more", "y")}
    for edit in (setting("each[0..1]", "args.x", 1), {"op": "skip", "stepId": "each[0..1]"},
                 {"op": "remove", "stepId": "each[0..1]"}):  # fmt: skip
        with pytest.raises(Refused, match=r"its items run in a child plan\. Edit a step of 'each'") as refused:
            revise(schedule.run, Edits.model_validate({"edits": [edit]}), NOW)
        assert refused.value.code == "IN_CHILD_PLAN"
    with pytest.raises(Refused) as refused:
        revise(schedule.run, Edits.model_validate({"edits": [{"op": "add", **place}]}), NOW)
    assert refused.value.code == "NOT_A_BLOCK"
    revise(schedule.run, Edits.model_validate({"edits": [setting("each.work", "args.text", "z")]}), NOW)
