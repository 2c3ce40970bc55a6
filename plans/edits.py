"""The edits of a plan as values: set, add, remove, move, skip, unskip; what a person sends, and what recovery does.

    {"op": "set", "stepId": "s2", "path": "args.path", "value": "b.txt"}     without stepId: title, maxParallel, ...
    {"op": "add", "step": {"id": "s9", ...}, "after": "s2"}                  or before; else at the end
    {"op": "move", "stepId": "s3", "after": "s1"}                            without after: to the front
    {"op": "remove" | "skip" | "unskip", "stepId": "s4"}

What they mean, and whether they may be applied, is decided by `plans.execution.apply_edits`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from plans.model import StepId, Value

MAX_BYTES = 262_144
"""Largest message with edits, as JSON."""
MAX_EDITS = 200


class SetField(Value):
    """Give a field of a step, or of the plan, another value; null takes it away."""

    op: Literal["set"]
    step_id: StepId | None = None
    path: str = Field(min_length=1, max_length=500, description="`args.path`, `description`, `retry.attempts`, ...")
    value: Any = None


class AddStep(Value):
    """Put in a step."""

    op: Literal["add"]
    step: dict[str, Any]
    after: StepId | None = None
    before: StepId | None = None


class RemoveStep(Value):
    """Take a step out."""

    op: Literal["remove"]
    step_id: StepId


class MoveStep(Value):
    """Put a step after another in the list."""

    op: Literal["move"]
    step_id: StepId
    after: StepId | None = None


class SkipStep(Value):
    """Leave a step out; what depends on it runs, unless it uses its value."""

    op: Literal["skip"]
    step_id: StepId
    reason: str = Field(default="", max_length=1_000)


class UnskipStep(Value):
    """Take a skip back."""

    op: Literal["unskip"]
    step_id: StepId


Edit = Annotated[SetField | AddStep | RemoveStep | MoveStep | SkipStep | UnskipStep, Field(discriminator="op")]


class EditPlan(Value):
    """Edits to be applied together, all or none."""

    expect_version: int | None = Field(default=None, strict=True, description="Refuse when the plan has moved on.")
    edits: list[Edit] = Field(min_length=1, max_length=MAX_EDITS)
    by: str = Field(default="", max_length=200)
    comment: str = Field(default="", max_length=2_000)


class Regenerate(Value):
    """The LLM is to revise the plan."""

    feedback: str = Field(min_length=1, max_length=10_000)
    expect_version: int | None = Field(default=None, strict=True)
    by: str = Field(default="", max_length=200)
