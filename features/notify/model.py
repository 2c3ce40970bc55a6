"""The parts of notifications: what a run has handed over, what its worker and the plan above add to its rules."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from plansurvive.plans.model.notify import NotifyRule
from plansurvive.plans.model.parts import Part


class Told(Part):
    """Part of a run: what it has handed over, so that nothing is handed over twice or left out."""

    feature: ClassVar[str] = "notify"

    waiting: dict[str, str] = Field(
        default_factory=dict, description="Of each step that awaits a decision, which of its questions was."
    )
    budget: int = Field(default=0, description="Number of the last log entry about budget or overrides that was.")
    ended: bool = Field(default=False, description="The end of the plan was.")


class MoreRules(Part):
    """Part of a worker's facts, and of the options of a child plan or agent: rules beside the plan's own."""

    feature: ClassVar[str] = "notify"

    rules: list[NotifyRule] = Field(default_factory=list, max_length=100, description="Of the worker; of the parent.")
