"""What a workflow and the activity `segment` say to each other, and what a run keeps of its segments."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import AwareDatetime, Field

from plansurvive.plans.activity_io import Attempt, Return
from plansurvive.plans.model import Value
from plansurvive.plans.model.parts import Part
from plansurvive.plans.run import Run

SEGMENT = "segment"
"""Type of the activity."""

SETTLED, TOGETHER = "settled", b"together"
"""Metadata of the answer: the worker has settled calls with the same time at once, before it began others.

The workflow then does so as well. As metadata, for workers that do not know it, and for answers in older histories.
"""


def segment_id(number: int) -> str:
    """Activity id of a segment; no step has such an id."""
    return f"~segment-{number}"


class ExpressFact(Part):
    """Part of the facts: what the plan's workers do with plans that say nothing."""

    feature: ClassVar[str] = "express"

    on: bool = Field(default=False, description="PLANS_EXPRESS=on.")


class ExpressState(Part):
    """Part of a run: its segments."""

    feature: ClassVar[str] = "express"

    segments: int = Field(default=0, description="How many it has begun.")
    barred: list[str] = Field(
        default_factory=list, description="Steps whose calls a segment has left: they are made as activities."
    )
    off: str = Field(default="", description="Why it makes no more segments; empty: it does.")


class ExpressNote(Part):
    """Part of what a call returns, and of its step's result."""

    feature: ClassVar[str] = "express"

    segment: int = Field(default=0, description="Number of the segment that made the call.")


class SegmentOrder(Value):
    """What is asked of the activity `segment`, apart from the run."""

    number: int = Field(ge=1, description="Of the segment in its run.")
    seconds: float
    steps: int
    parallel: int
    barred: list[str] = Field(default_factory=list)
    session: str = Field(description="What the idempotency keys of its calls begin with.")
    partial: dict[str, int] = Field(
        default_factory=dict, description="Loops of which only a window goes along, with the number of items behind it."
    )
    unseen: str = Field(default="", description="Digests of the names of files whose stamps stay, in base64.")


class SegmentRequest(SegmentOrder):
    """Input of the activity `segment`."""

    run: Run = Field(description="What the segment can come to of the run (`carrying.carried`).")


class Failed(Value):
    """A call that has failed, or one attempt of it."""

    error: str = Field(description="What failed, whole.")
    attempt: Attempt = Field(description="As it is recorded; with a delay if another attempt follows.")
    details: dict[str, Any] = Field(default_factory=dict, description="As an activity that fails reports it.")


class CallEnd(Value):
    """How one call of a segment ended."""

    step_id: str
    number: int = Field(ge=1, description="Number of the step's call.")
    digest: str = Field(description="Of the call; it is settled for this one alone (`plans.run.step_call`).")
    tool: str = Field(default="", max_length=200)
    args: str = Field(default="", description="SHA-256 of the arguments, as the audit record of an activity has it.")
    began: AwareDatetime | None = Field(default=None, description="By the worker's clock, as the end is.")
    ended: AwareDatetime | None = None
    returned: Return | None = None
    failed: Failed | None = None
    left: str = Field(default="", description="Why it is left to an activity, if it neither returned nor failed.")


class SegmentEnd(Value):
    """What an activity answers that has run a segment."""

    calls: list[CallEnd] = Field(default_factory=list, description="In the order in which they ended.")
    unusable: str = Field(default="", description="Why this worker can run no segment: no call was made.")
