"""What a Run holds of answers and events: a part of its state, so that continue-as-new and a resumed run keep it."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from plansurvive.plans.model import Value
from plansurvive.plans.step_state import State, named

EVENT_NAME = r"^[A-Za-z0-9][A-Za-z0-9_.:/-]*$"
"""Letters, digits and `_ . : / -`, as in `order.paid` or `deploy/finished`."""


class Answered(Value):
    """Who answered a question, and when."""

    by: str = ""
    time: datetime
    source: Literal["signal", "update", "timeout"] = Field(
        default="signal", description="timeout: its time limit passed, and the default was taken."
    )
    via: str = Field(default="", description="Where the person spoke: web, link, mcp; empty: by command or program.")
    verified: bool = Field(default=False, description="A login has verified the name; only of signed messages.")

    @property
    def who(self) -> str:
        """The name, with what is known of how it came in; empty without one."""
        return named(self.by, self.via, verified=self.verified)


class Answer(Answered):
    """The answer to a step's question. Once the step has completed, its result holds the value, and this does not."""

    value: Any = None
    used: bool = Field(default=False, description="The step has completed with it.")
    digest: str = Field(default="", description="Of the question it is about; empty: it was not known as a whole.")

    def view(self) -> dict[str, Any]:
        """Who answered and when, as JSON data: what is known of how the name came in only if there is something."""
        known = {name for name in ("via", "verified") if getattr(self, name)}
        return self.model_dump(mode="json", include={"by", "time", "source"} | known)


class Event(Value):
    """An event that was sent to the plan."""

    number: int = Field(ge=1, description="Counts the events of a plan.")
    name: str
    data: Any = None
    by: str = ""
    time: datetime
    size: int = Field(default=0, ge=0, description="Bytes of its JSON text.")
    via: str = Field(default="", description="Where the person spoke: web, link, mcp; empty: by command or program.")
    verified: bool = Field(default=False, description="A login has verified the name; only of signed messages.")

    @property
    def who(self) -> str:
        """The name, with what is known of how it came in; empty without one."""
        return named(self.by, self.via, verified=self.verified)


class Waiting(State):
    """The answers and events of a Run."""

    answers: dict[str, Answer] = Field(default_factory=dict, description="By step.")
    events: list[Event] = Field(default_factory=list, description="The newest ones, oldest first.")
    number: int = Field(default=0, description="Number of events so far.")
    dropped: int = Field(default=0, description="Number of events that are no longer kept.")
    received: dict[str, list[int]] = Field(
        default_factory=dict, description="By waiting step, whatever its round, the kept events that it has received."
    )
