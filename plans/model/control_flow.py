"""The fields of a step that repeat it; those that hold steps themselves are in `step.py`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, model_validator

from plansurvive.plans.model.values import MAX_PARALLEL, MAX_STEPS, StepId, Value

MAX_ROUNDS = 10_000
"""Maximum number of rounds of a `repeat`."""

Expression = Annotated[str, StringConstraints(min_length=1, max_length=1_000)]
Percent = Annotated[str, StringConstraints(pattern=r"^(100|[0-9]{1,2})%$")]


class ForEach(Value):
    """Runs a step once for each item of a list. In a plan file, `forEach: X` alone means `forEach: {items: X}`."""

    items: Expression | list[Any] = Field(
        description="The list: a reference, a JMESPath expression over finished steps and inputs, or the list itself. "
        "`forEach: X` alone means `forEach: {items: X}`."
    )
    as_: StepId = Field(
        default="item",
        alias="as",
        description="Name of the item in references; default `item`: `{{item}}`, `$item.name`.",
    )
    key: Expression | None = Field(
        default=None,
        description="JMESPath over the item: a text or number that names its instance for good, so that a retry or a "
        "changed list finds it again; default: the index.",
    )
    max_parallel: int | None = Field(
        default=None,
        ge=1,
        le=MAX_PARALLEL,
        strict=True,
        description="Items in progress at the same time; default: as many as the plan allows.",
    )
    tolerate: Annotated[int, Field(ge=0, le=MAX_STEPS, strict=True)] | Percent = Field(
        default=0,
        description='How many items may fail or be denied, as a number or a percentage: `3`, `"10%"`; default 0. Their '
        "value is `null`.",
    )
    batch: int | None = Field(
        default=None,
        ge=1,
        le=MAX_STEPS,
        strict=True,
        description="Items per child plan, with `mode: plans`; default 100.",
    )
    mode: Literal["steps", "plans"] = Field(
        default="steps",
        description="`steps` (default): the items run in this plan; `plans`: in child plans of `batch` items each.",
    )

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, data: Any) -> Any:
        return {"items": data} if isinstance(data, (str, list)) else data


class Repeat(Value):
    """Runs a step again until a condition over its own value holds."""

    until: Expression = Field(description="JMESPath over the value of the round; true ends the repetition.")
    limit: int = Field(
        default=10,
        ge=1,
        le=MAX_ROUNDS,
        strict=True,
        description="Maximum number of rounds, 10 by default; after it the step fails with `REPEAT_LIMIT`.",
    )
    delay: float = Field(
        default=0.0, ge=0, le=31_536_000, strict=True, description="Seconds between two rounds; default 0."
    )
    keep: Literal["last", "all"] = Field(
        default="last",
        description="`last` (default): the value is that of the last round; `all`: the list of all of them.",
    )
