"""What a run keeps of the plan above it, its part of a loop of that plan included, and of the plans below it."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from plansurvive.plans.child_state import ParentLink
from plansurvive.plans.flow.opened import Opened
from plansurvive.plans.large_value import Composed
from plansurvive.plans.model.parts import Part
from plansurvive.plans.step_state import State


class Batch(State):
    """The items of a loop that a child plan runs for its parent, under the keys that they have in the whole list."""

    step_id: str = Field(description="The loop, in this plan.")
    items: list[Any]
    keys: list[str] = Field(description="As in ids; without `key`, the places in the whole list.")
    first: int = Field(default=0, description="The place of the first one in the whole list.")
    composed: dict[str, Composed] = Field(
        default_factory=dict, description="By step: values of the parent's loops that hold large ones."
    )

    @property
    def opened(self) -> Opened:
        """How the loop begins in the child plan."""
        return Opened(items=self.items, keys=self.keys, first=self.first, part=True)


class Family(Part):
    """Part of a run: the plan above it and what it runs of that, and what the runs before left of those below."""

    feature: ClassVar[str] = "children"

    parent: ParentLink | None = Field(default=None, description="The plan that it runs for, as a step of it.")
    batch: Batch | None = Field(default=None, description="The part of its parent's loop that it runs.")
    agents: dict[str, dict[str, Any]] = Field(default_factory=dict, description="By step, the child's run to resume.")
