"""The messages that bring answers and events."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any, ClassVar

from pydantic import Field, field_validator

from plansurvive.features.waiting.model import EVENT_NAME
from plansurvive.plans.definition.parsing import check_depth, check_values
from plansurvive.plans.execution.messages import Digest, Via
from plansurvive.plans.model import Value
from plansurvive.plans.signature import Signature

WANTED, PASSED = "events_wanted", "events_passed"
"""Signals: of a child plan to its plan, and of a plan to its child plan."""
PASSED_BYTES = 131_072
"""Maximum size of the second one: it holds several events, each of which has come in a message of its own."""
Name = Annotated[str, Field(pattern=EVENT_NAME, max_length=200)]
Number = Annotated[int, Field(ge=0, le=10**9)]
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

    name: Name
    data: Any = None
    by: str = Field(default="", max_length=200)
    via: Via = Field(default="", description="Where the person spoke.")
    verified: bool = Field(default=False, strict=True, description="The name is verified; counts only if signed.")
    signature: Signature | None = Field(default=None, description="Where the worker asks for signed decisions.")


class EventsWanted(Value):
    """The signal `events_wanted`: which events the steps of a child plan wait for, and which they have received."""

    step_id: str = Field(min_length=1, max_length=1_000, description="The step of the plan that runs it.")
    child: str = Field(max_length=200, description="Id of the child plan.")
    wants: dict[Name, Number] = Field(
        default_factory=dict,
        max_length=200,
        description="Names that steps wait for now, each with the number of the last event that was passed on.",
    )
    ends: list[Name] = Field(default_factory=list, max_length=200, description="Names that none waits for any more.")
    received: list[Number] = Field(
        default_factory=list, max_length=200, description="Of a child plan that ends: what its steps have received."
    )


class PassedEvent(Value):
    """An event as the plan above has it."""

    number: int = Field(ge=1, le=10**9)
    name: Name
    text: str = Field(default="null", description="Its data as JSON: in this message they could be nested too deep.")
    by: str = Field(default="", max_length=200)
    via: Via = ""
    time: datetime

    @field_validator("text")
    @classmethod
    def _readable(cls, text: str) -> str:
        check_depth(text)
        check_values(json.loads(text))
        return text

    @property
    def data(self) -> Any:
        """The data of the event."""
        return json.loads(self.text)


class EventsPassed(Value):
    """The signal `events_passed`: events of the plan above, oldest first."""

    events: list[PassedEvent] = Field(min_length=1, max_length=100)
