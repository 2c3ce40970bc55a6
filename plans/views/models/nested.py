"""The view of what is inside a block, loop or repetition: folded into its counts."""

from __future__ import annotations

from pydantic import Field

from plansurvive.plans.model import Value


class InsideView(Value):
    """What is inside a step that has begun: its items, rounds or steps, counted."""

    kind: str = Field(description="each, repeat, block or switch; call: a step whose `catch` runs or ran.")
    total: int | None = Field(
        default=None, description="Items of the list, limit of the rounds, or steps of the block; none: not known."
    )
    began: int = Field(default=0, description="How many of them have begun.")
    counts: dict[str, int] = Field(
        default_factory=dict,
        description="Those that have begun by status, `denied`, `unanswered` apart. One in which a person, the LLM or"
        " an event is awaited counts as that alone: `awaiting approval`.",
    )
    alternative: int | None = Field(default=None, description="Which alternative of a `switch` runs, from 1.")
    alternatives: int | None = Field(default=None, description="How many it has.")
    caught: str | None = Field(default=None, description="Code of the failure that its `catch` handled.")
    closing: bool = Field(default=False, description="Its `finally` runs or ran.")
