"""The part of a loop that a child plan runs: what it is given beside its plan."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from plansurvive.plans.flow.opened import Opened
from plansurvive.plans.large_value import Composed
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
