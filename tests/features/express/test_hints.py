"""Where `express` is refused, where `plan check` suggests it, and how a step that ran so is marked."""

from __future__ import annotations

from typing import Any

import pytest

from plansurvive.client.feature import hints_of, language
from plansurvive.features.express.in_views import IN_VIEWS
from plansurvive.features.express.model import ExpressNote
from plansurvive.plans.model import Step
from plansurvive.plans.step_state import Result, Status, StepState
from tests.plans.building import NOW, TOOLS, plan_of

QUICK = {name: spec.model_copy(update={"quick": name == "read_file"}) for name, spec in TOOLS.items()}
READ: dict[str, Any] = {"tool": "read_file", "args": {"path": "a"}}
LOOP: dict[str, Any] = READ | {"forEach": {"items": list(range(300))}}


def codes(*steps: dict[str, Any], **fields: Any) -> list[str]:
    found = plan_of(*(Step.model_validate(step) for step in steps), **fields)
    return [each.code for each in hints_of(found, QUICK)]


def test_many_quick_steps_are_worth_a_hint() -> None:
    many = [{"id": f"s{index}", **READ} for index in range(201)]
    assert (codes(*many), codes(*many[:200])) == (["EXPRESS_PAYS"], [])
    [hint] = hints_of(plan_of(*(Step.model_validate(step) for step in many)), QUICK)
    assert (hint.severity, hint.field) == ("warning", "express")
    assert hint.message.startswith("201 of its calls are quick; with `express: true`")


@pytest.mark.parametrize(
    ("step", "found"),
    [
        (LOOP, ["EXPRESS_PAYS"]),
        ({"forEach": {"items": [1, 2, 3]}, "steps": [{"id": "t", **LOOP}]}, ["EXPRESS_PAYS"]),
        (LOOP | {"express": False}, []),
        (LOOP | {"express": True}, []),
        (LOOP | {"requiresApproval": True}, []),
        (LOOP | {"repeatable": False}, []),
        (LOOP | {"queue": "gpu"}, []),
        (LOOP | {"tool": "write_file", "args": {"path": "a", "content": ""}}, []),
        (READ | {"forEach": {"items": "inputs.list"}}, []),
    ],
)
def test_a_hint_is_about_what_may_be_in_a_segment(step: dict[str, Any], found: list[str]) -> None:
    assert codes({"id": "s", **step}) == found


@pytest.mark.parametrize("said", [True, False])
def test_a_plan_that_has_decided_gets_no_hint(said: bool) -> None:
    assert codes({"id": "s", **LOOP}, express=said) == []


@pytest.mark.parametrize("said", [True, {"seconds": 2}])
def test_a_step_alone_may_not_ask_for_it(said: Any) -> None:
    step = Step.model_validate({"id": "s", **READ, "express": said})
    [problem] = [found for check in language().checks for found in check(step, {})]
    assert (problem.code, problem.step_id, problem.field, problem.severity) == ("BAD_EXPRESS", "s", "express", "error")
    assert "set `express` on the plan" in problem.message


@pytest.mark.parametrize(
    "step",
    [
        READ | {"express": False},
        LOOP | {"express": True},
        READ | {"repeat": {"until": "`true`", "limit": 2}, "express": True},
        {"steps": [{"id": "t", **READ}], "express": True},
    ],
)
def test_a_block_or_a_loop_may(step: dict[str, Any]) -> None:
    assert not [found for check in language().checks for found in check(Step.model_validate({"id": "s", **step}), {})]


def test_a_step_that_a_segment_ran_is_marked() -> None:
    step = Step.model_validate({"id": "s", **READ})
    assert IN_VIEWS.details is not None
    result = Result(ok=True, timestamp=NOW, parts={"express": ExpressNote(segment=3)})
    state = StepState(status=Status.COMPLETED, result=result)
    sentence = "Express: ran in segment 3, one activity for several steps (~segment-3)"
    assert IN_VIEWS.details("plan", step, state) == [sentence]
    read = StepState.model_validate_json(state.model_dump_json())
    assert IN_VIEWS.details("plan", step, read) == [sentence]
    assert IN_VIEWS.details("plan", step, StepState(result=Result(ok=True, timestamp=NOW))) == []
