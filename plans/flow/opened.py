"""What is known of a block, loop or repetition that has begun: enough to find its steps again after continue-as-new."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from plansurvive.plans.large_value import Composed, LargeValue
from plansurvive.plans.model import ForEach, Value
from plansurvive.plans.step_state import Result, State, StepState


class Opened(State):
    """The progress of one container."""

    items: list[Any] | None = Field(default=None, description="The items of a `forEach`.")
    keys: list[str] | None = Field(default=None, description="Their keys as in ids, in item order; none: the indexes.")
    began: int = Field(default=0, description="Items or rounds that have begun, counted from the first.")
    failed: int = Field(default=0, description="Items that failed.")
    case: int | None = Field(default=None, description="The alternative of a `switch` that runs.")
    body: Result | None = Field(default=None, description="How its own steps ended, once `catch` or `finally` runs.")
    handler: int | None = Field(default=None, description="The `catch` that runs or ran.")
    closing: bool = Field(default=False, description="Its `finally` runs or ran.")
    cancelled: bool = Field(default=False, description="Its `finally` runs because the plan was cancelled.")
    first: int = Field(default=0, description="Of a batch of another plan's loop: the place of its first item there.")
    part: bool = Field(default=False, description="It is such a batch: it fails at its end if an item has failed.")

    def key(self, index: int) -> str:
        """The key of an item, as in ids."""
        return self.keys[index] if self.keys is not None else str(index)


class Kept(State):
    """What an earlier run left: of the steps inside containers until they begin in this one, and who read files."""

    steps: dict[str, StepState] = Field(default_factory=dict, description="By id.")
    opened: dict[str, Opened] = Field(default_factory=dict, description="Of the containers among them that are done.")
    items: dict[str, str] = Field(default_factory=dict, description="By id of an instance, the hash of its item.")
    stale: list[str] = Field(default_factory=list, description="Instances whose item is another one now.")
    readers: dict[str, list[str]] = Field(
        default_factory=dict,
        description="By path, the completed steps that read that file, wherever they are. Once a worker has compared"
        " the files, only of those that have changed since.",
    )


class ListItems(Value):
    """Input of `list_items`: the list of a `forEach`, over values of which some are stored outside history."""

    rule: ForEach
    values: dict[str, Any] = Field(default_factory=dict, description="Inline values.")
    large: dict[str, LargeValue] = Field(default_factory=dict, description="Large values.")
    composed: dict[str, Composed] = Field(default_factory=dict, description="Values of blocks that hold large ones.")
