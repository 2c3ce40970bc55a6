"""How many steps one activity may run, as a plan says it."""

from __future__ import annotations

from pydantic import Field

from plansurvive.plans.model.values import Value


class Express(Value):
    """Bounds of a segment: of quick steps that one activity runs."""

    seconds: float = Field(
        default=1.0, gt=0, le=10, description="No step begins later than this many seconds after the first."
    )
    steps: int = Field(default=256, ge=1, le=1_000, strict=True, description="Most steps in one activity.")
