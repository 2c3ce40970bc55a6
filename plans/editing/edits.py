"""Edits of a plan: set, add, remove, move, skip, unskip. People send them; choices of the LLM are edits, too.

    {"op": "set", "stepId": "s2", "path": "args.path", "value": "b.txt"}     without stepId: title, maxParallel, ...
    {"op": "add", "step": {"id": "s9", ...}, "after": "s2"}                  or before; else at the end
    {"op": "move", "stepId": "s3", "after": "s1"}                            without after: to the front
    {"op": "remove" | "skip" | "unskip", "stepId": "s4"}

`plans.editing.apply_edits` validates and applies them, whoever changes the plan.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from plansurvive.plans.model import Value

MAX_EDITS = 200
RunStepId = Annotated[str, StringConstraints(min_length=1, max_length=1_000)]
"""Of a step of the plan, of one inside a block (`resize.thumb`), or of an instance (`resize[cat.png].thumb`)."""


class SetField(Value):
    """Set a field of a step, or of the plan if `stepId` is absent; null removes it."""

    op: Literal["set"]
    step_id: RunStepId | None = None
    path: str = Field(min_length=1, max_length=500, description="`args.path`, `description`, `retry.attempts`, ...")
    value: Any = None


class AddStep(Value):
    """Add a step."""

    op: Literal["add"]
    step: dict[str, Any]
    after: RunStepId | None = None
    before: RunStepId | None = None


class RemoveStep(Value):
    """Remove a step."""

    op: Literal["remove"]
    step_id: RunStepId


class MoveStep(Value):
    """Move a step after another one; without `after`, to the front."""

    op: Literal["move"]
    step_id: RunStepId
    after: RunStepId | None = None


class SkipStep(Value):
    """Skip a step. Its dependents run unless they reference its value."""

    op: Literal["skip"]
    step_id: RunStepId
    reason: str = Field(default="", max_length=1_000)


class UnskipStep(Value):
    """Undo a skip."""

    op: Literal["unskip"]
    step_id: RunStepId


Edit = Annotated[SetField | AddStep | RemoveStep | MoveStep | SkipStep | UnskipStep, Field(discriminator="op")]


Via = Annotated[str, StringConstraints(pattern=r"^[a-z]{0,16}$")]
"""Where the author of a change spoke, as `plans.execution.messages.Via`; empty: by command or program."""


class Edits(Value):
    """Edits of one author, applied atomically: all or none."""

    expect_version: int | None = Field(
        default=None, strict=True, description="Reject if the plan has another version now."
    )
    edits: list[Edit] = Field(min_length=1, max_length=MAX_EDITS)
    by: str = Field(default="", max_length=200)
    via: Via = Field(default="", description="How the author sent it.")
    verified: bool = Field(default=False, strict=True, description="The name is verified; counts only if signed.")
    comment: str = Field(default="", max_length=2_000)
