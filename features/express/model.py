"""What a segment answers: how each of its calls ended, in the order in which they did."""

from __future__ import annotations

from pydantic import Field

from plansurvive.plans.activity_io import Return
from plansurvive.plans.model import Value


class CallEnd(Value):
    """How one call of a segment ended."""

    step_id: str
    number: int = Field(ge=1, description="Number of the step's call.")
    digest: str = Field(description="Of the call; it is settled for this one alone (`plans.step_call`).")
    returned: Return | None = Field(default=None, description="None: it failed, or could not begin on this worker.")
    code: str = Field(default="", description="Of its failure.")
    error: str = Field(default="", description="What failed.")


class SegmentEnd(Value):
    """What an activity answers that has run a segment."""

    calls: list[CallEnd] = Field(default_factory=list)
    left: dict[str, str] = Field(default_factory=dict, description="By step, why it is left to the workflow.")
