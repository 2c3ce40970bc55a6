"""The message that takes a decision back."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from plansurvive.plans.execution.messages import Via
from plansurvive.plans.model import Value
from plansurvive.plans.signature import Signature


class Withdraw(Value):
    """Take back one's own decision about a step, which no call has used yet."""

    EXAMPLE: ClassVar[str] = '{"stepId": "step_1", "by": "ann"}'

    step_id: str = Field(min_length=1, max_length=1_000)
    by: str = Field(default="", max_length=200)
    comment: str = Field(default="", max_length=2_000)
    via: Via = Field(default="", description="Where the person spoke.")
    verified: bool = Field(default=False, strict=True, description="The name is verified; counts only if signed.")
    signature: Signature | None = Field(default=None, description="Where the worker asks for signed decisions.")
