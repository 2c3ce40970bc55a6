"""The message to a coding agent at work, which people and programs send."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from plansurvive.features.waiting.model import EVENT_NAME
from plansurvive.plans.execution.messages import Via
from plansurvive.plans.model import Value
from plansurvive.plans.signature import Signature


class TellAgent(Value):
    """A message of a person or program to the agent: the event `message`, in the form that plans take events in."""

    EXAMPLE: ClassVar[str] = '{"name": "message", "data": "Keep the old name."}'

    name: str = Field(pattern=EVENT_NAME, max_length=200)
    data: Any = None
    by: str = Field(default="", max_length=200)
    via: Via = Field(default="", description="Where the person spoke.")
    verified: bool = Field(default=False, strict=True, description="The name is verified; counts only if signed.")
    signature: Signature | None = Field(default=None, description="Where the worker asks for signed decisions.")
