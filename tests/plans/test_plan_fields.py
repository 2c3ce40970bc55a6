"""Each field of a plan says in the model where it counts; the lists made from that are complete."""

from __future__ import annotations

from typing import Annotated

import pytest

from plansurvive.apps.mcp.tools.editing import OF_THE_PLAN
from plansurvive.features.children.batches import batch_run
from plansurvive.plans.editing.apply_edits import PLAN_FIELDS
from plansurvive.plans.flow.opened import Opened
from plansurvive.plans.llm.own_fields import own_fields
from plansurvive.plans.model import Plan, Value
from plansurvive.plans.model.plan import OfPlan, plan_aliases, plan_names
from plansurvive.plans.run.feature import NO_RULES
from tests.plans.building import NOW, begun
from tests.plans.flow.player import note, plan

SPELLINGS = sorted({spelling for name, info in Plan.model_fields.items() for spelling in (name, info.alias or name)})
OF_A_MODEL = {"title", "steps", "estimatedDuration", "estimated_duration"}


class Unmarked(Value):
    """A field without a marker."""

    marked: Annotated[int, OfPlan.EDIT] = 0
    plain: int = 0


class Twice(Value):
    """A field with two markers."""

    both: Annotated[int, OfPlan.EDIT, OfPlan.NOTHING] = 0


@pytest.mark.parametrize(("model", "name"), [(Unmarked, "plain"), (Twice, "both")])
def test_a_field_without_one_marker_is_an_error(model: type[Value], name: str) -> None:
    with pytest.raises(TypeError, match=f"field '{name}' of {model.__name__} needs one marker"):
        plan_names(OfPlan.EDIT, model)
    assert plan_names(OfPlan.NOTHING) == tuple(Plan.model_fields), "every field of a plan has one"


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_model_decides_the_title_and_the_steps_and_no_other_field_of_a_plan(spelling: str) -> None:
    notes: list[str] = []
    own = own_fields({spelling: []}, {}, notes)
    assert (own, notes) == (
        ({spelling: []}, [])
        if spelling in OF_A_MODEL
        else ({}, [f"the plan: {spelling} was removed; the model may not set it"])
    )


def test_people_edit_eight_fields_of_a_running_plan_and_an_agent_two_of_those() -> None:
    assert {"title", "maxParallel", "timeout", "defaults", "budget", "notify", "estimatedDuration",
            "express"} == PLAN_FIELDS  # fmt: skip
    assert {"title", "estimatedDuration", "estimated_duration"} == OF_THE_PLAN


def test_of_a_plan_that_is_resumed_its_budget_is_changed_and_no_other_field() -> None:
    assert plan_names(OfPlan.RERUN) == ("budget",)


def test_a_view_leaves_out_what_is_not_set() -> None:
    assert set(plan_aliases(OfPlan.SPARSE)) == {
        "outputs",
        "rollback",
        "owns",
        "notify",
        "finally",
        "workspaceLock",
        "labels",
        "express",
    }


def test_a_batch_has_the_inputs_the_defaults_and_the_cache_of_its_plan() -> None:
    loop = {"id": "each", "forEach": {"items": [1, 2], "mode": "plans", "batch": 1}, "steps": [note("work", "x")]}
    own = {"inputs": {"n": {"type": "integer", "default": 3}}, "defaults": {"timeout": 5.0}, "cache": False}
    schedule = begun(*plan(loop).plan.steps, **own)
    schedule.start("each", NOW)
    schedule.open("each", Opened(items=[1, 2]), NOW)
    schedule.open_next(64, NOW)
    batch = batch_run(schedule.run, schedule.step("each[0..0]"), None, "b", NOW, NO_RULES).plan
    assert {name: getattr(batch, name) for name in own} == {name: getattr(schedule.run.plan, name) for name in own}
