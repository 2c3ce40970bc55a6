"""The values of a plan: frozen, camelCase in JSON, closed to unknown fields."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from plansurvive.plans.activity_io import Call, Return
from plansurvive.plans.errors import (
    BadExpression,
    BadReference,
    IllegalMove,
    InvalidPlan,
    PlanError,
    Refused,
    ToolError,
)
from plansurvive.plans.model import Plan, Problem, Retry, Step
from tests.plans.building import plan_of, step


def test_a_plan_cannot_be_changed_only_made_anew() -> None:
    plan = plan_of(step("a"))
    with pytest.raises(ValidationError, match="frozen"):
        plan.version = 2  # type: ignore[misc]
    assert plan.model_copy(update={"version": 2}).version == 2


@pytest.mark.parametrize("name", ["a", "A-1_b", "_x", "0", "x" * 128])
def test_an_id_is_letters_digits_underscore_and_dash(name: str) -> None:
    assert step(name).id == name


@pytest.mark.parametrize("kind", [Plan, Step, Retry, Call, Return, Problem])
def test_every_field_is_written_in_camel_case(kind: type[Plan]) -> None:
    schema = kind.model_json_schema(by_alias=True)
    schema = schema.get("$defs", {}).get(kind.__name__) or schema  # a step contains steps: its schema is a reference
    assert not [name for name in schema["properties"] if "_" in name]
    assert schema["additionalProperties"] is False


def test_every_field_of_a_plan_file_carries_a_sentence() -> None:
    schema = Plan.model_json_schema(by_alias=True)
    for model in [schema, *schema["$defs"].values()]:
        assert all(field.get("description") or "$ref" in field for field in model["properties"].values()), model[
            "title"
        ]


def test_a_problem_tells_its_place_first() -> None:
    assert Problem(code="X", message="m", step_id="a", field="args.x").text == "X: step 'a' args.x: m"
    assert Problem(code="X", message="m").text == "X: m"


def test_an_invalid_plan_carries_all_its_problems() -> None:
    two = [Problem(code="X", message="m"), Problem(code="Y", message="n", step_id="a")]
    assert InvalidPlan(two).message == "The plan has 2 problems:\n- X: m\n- Y: step 'a': n"
    assert InvalidPlan(two[:1]).problems == two[:1]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (PlanError("x"), "PLAN_ERROR"),
        (Refused("x"), "REFUSED"),
        (Refused("x", "STALE_VERSION"), "STALE_VERSION"),
        (BadReference("x"), "BAD_REFERENCE"),
        (BadExpression("x"), "BAD_EXPRESSION"),
        (IllegalMove("x"), "ILLEGAL_MOVE"),
        (InvalidPlan([]), "INVALID_PLAN"),
        (ToolError("NO_SPACE", "x"), "NO_SPACE"),
    ],
)
def test_every_error_is_a_plan_error_with_a_stable_code(error: PlanError, code: str) -> None:
    assert isinstance(error, PlanError)
    assert error.code == code


def test_a_tool_error_says_whether_another_attempt_may_help() -> None:
    assert not ToolError("NOT_FOUND", "x").retryable
    assert ToolError("HTTP_STATUS", "x", retryable=True, retry_after=3).retry_after == 3
