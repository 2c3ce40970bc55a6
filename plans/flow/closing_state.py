"""How far a run is in closing its plan: the part of a Run that rollback and `finally` need (DESIGN 2.8)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from plansurvive.plans.step_state import State

PHASES = {"rollback": "rolling back", "finally": "finishing"}
"""What a running plan does in each phase of its end, in words."""


class Closing(State):
    """The end of a plan that rolls back or has a `finally`. Begins when the last of its steps has ended."""

    phase: Literal["rollback", "finally"]
    ends: str = Field(description="The status that the plan ends with, unless a step of its `finally` fails.")
    order: list[str] = Field(default_factory=list, description="Steps to undo, the one that completed last first.")
    of: str = Field(default="", description="Id of the ended plan that the run undoes; empty: it closes its own.")
    before: list[str] = Field(default_factory=list, description="Steps of it that were undone before, by other runs.")
    restored: list[str] = Field(
        default_factory=list, description="Steps whose files were restored since the plan ended: they are not done."
    )
    begun: int = Field(default=0, description="How many of `order` have begun to be undone; one at a time.")
    cancelled: bool = Field(
        default=False, description="A person cancelled the plan, before or meanwhile; another time ends it at once."
    )
    abandoned: bool = Field(default=False, description="Cancelled once more: nothing further starts.")

    @property
    def undone(self) -> list[str]:
        """The steps whose undo has begun."""
        return [*self.before, *self.order[: self.begun]]
