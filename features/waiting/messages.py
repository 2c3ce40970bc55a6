"""The messages that bring answers and events."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from plansurvive.features.waiting.model import EVENT_NAME
from plansurvive.plans.execution.messages import Digest, Via
from plansurvive.plans.model import Value
from plansurvive.plans.signature import Signature

KEPT = "kept for steps that will wait for it"
"""How the reply about an event ends that no step waits for yet."""


class AnswerQuestion(Value):
    """Answer the question of a step."""

    EXAMPLE: ClassVar[str] = '{"stepId": "step_1", "value": "yes"}'

    step_id: str = Field(min_length=1, max_length=1_000)
    value: Any
    by: str = Field(default="", max_length=200)
    via: Via = Field(default="", description="Where the person spoke.")
    verified: bool = Field(default=False, strict=True, description="The name is verified; counts only if signed.")
    digest: Digest | None = Field(default=None, description="The question that is answered; another one is refused.")
    signature: Signature | None = Field(default=None, description="Where the worker asks for signed decisions.")


class SendEvent(Value):
    """Tell the plan that something has happened, for the steps that wait for it."""

    EXAMPLE: ClassVar[str] = '{"name": "order.paid", "data": {"id": 7}}'

    name: str = Field(pattern=EVENT_NAME, max_length=200)
    data: Any = None
    by: str = Field(default="", max_length=200)
    via: Via = Field(default="", description="Where the person spoke.")
    verified: bool = Field(default=False, strict=True, description="The name is verified; counts only if signed.")
    signature: Signature | None = Field(default=None, description="Where the worker asks for signed decisions.")
