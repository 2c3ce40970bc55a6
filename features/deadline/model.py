"""What a child plan is told of the deadline of its parent."""

from __future__ import annotations

from typing import ClassVar

from pydantic import AwareDatetime, Field

from plansurvive.plans.model.parts import Part


class Within(Part):
    """Part of the options of a child plan or agent."""

    feature: ClassVar[str] = "deadline"

    until: AwareDatetime | None = Field(default=None, description="When its parent must have ended.")
