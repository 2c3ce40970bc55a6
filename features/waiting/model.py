"""What a run holds of events: a part of it, so that continue-as-new and a resumed run keep it."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from pydantic import Field

from plansurvive.plans.model import Value
from plansurvive.plans.model.parts import Part
from plansurvive.plans.step_state import named

WAIT_FOR = "wait_for"
"""Name of the tool that waits for an event."""
EVENT_NAME = r"^[A-Za-z0-9][A-Za-z0-9_.:/-]*$"
"""Letters, digits and `_ . : / -`, as in `order.paid` or `deploy/finished`."""


class Event(Value):
    """An event that was sent to the plan."""

    number: int = Field(ge=1, description="Counts the events of a plan.")
    name: str
    data: Any = None
    by: str = ""
    time: datetime
    size: int = Field(default=0, ge=0, description="Bytes of its JSON text.")
    via: str = Field(default="", description="Where it was sent: web, link or mcp; empty: a command or a program.")
    verified: bool = Field(default=False, description="A login has verified the name; only of signed messages.")
    above: int = Field(default=0, ge=0, description="Its number in the plan above, if that has passed it on.")

    @property
    def who(self) -> str:
        """The name, with what is known of how it came in; empty without one."""
        return named(self.by, self.via, verified=self.verified)


class Waiting(Part):
    """The events of a run."""

    feature: ClassVar[str] = "waiting"

    events: list[Event] = Field(default_factory=list, description="The newest ones, oldest first.")
    number: int = Field(default=0, description="Number of events so far.")
    dropped: int = Field(default=0, description="Number of events that are no longer kept.")
    received: dict[str, list[int]] = Field(
        default_factory=dict,
        description="By step that waits or runs a plan, whatever its round, the kept events that it has received.",
    )
    passed: dict[str, int] = Field(
        default_factory=dict, description="By name, the number in the plan above of the last event that it passed on."
    )

    def unproven(self) -> str:
        """Discard the events, which no step needs to have received."""
        number, self.events = len(self.events), []
        return f"{number} events" if number else ""


class FromAbove(Part):
    """Of the options of a child plan: what becomes of the events of the plan above."""

    feature: ClassVar[str] = "waiting"

    passes: bool = Field(default=False, description="It passes on those that steps of the child plan wait for.")


class Below(Part):
    """Part of a step that runs a plan: the events that steps of that plan, and below it, wait for."""

    feature: ClassVar[str] = "waiting"

    child: str = Field(default="", description="Id of the child plan.")
    names: dict[str, int] = Field(
        default_factory=dict, description="Their names, each with the number of the last event that was passed on."
    )
