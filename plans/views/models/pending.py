"""Views of pending decisions, and of what one would be about."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from plans.large_value import LargeValue
from plans.model import Value
from plans.views.models.view import View


class PendingView(Value):
    """A pending decision."""

    step_id: str
    kind: str
    tool: str
    description: str = ""
    item: str = Field(default="", description="The items of the loops around the step, cut: `cat.png, item 3 of 20`.")
    args: dict[str, Any] = Field(default_factory=dict, description="Arguments, references filled in, never cut.")
    queue: str | None = Field(default=None, description="Task queue whose workers make the call.")
    workspace: str = Field(default="", description="Directory it works in.")
    values: dict[str, str] = Field(default_factory=dict, description="Those of `large` in full; set by clients.")
    unusual: list[str] = Field(default_factory=list, description="What is unusual in the texts; set by clients.")
    network: bool = Field(default=False, description="The call asks for network access.")
    large: dict[str, LargeValue] = Field(
        default_factory=dict, description="By step, values that the call inserts and that are stored outside history."
    )
    digest: str = Field(default="", description="Digest of all this: a decision that names it is about nothing else.")
    changed: bool = Field(default=False, description="It asked for another call before, or an edit changed it.")
    asker: str = Field(default="", description="Which plan or agent asks, and who started it.")
    reasons: list[str] = Field(default_factory=list, description="Why it asks, in sentences.")
    always: str = Field(default="", description="What `remember` would approve as well; empty: it is not possible.")
    since: datetime | None = None
    deadline: datetime | None = None
    version: int = 1


class CallView(View, PendingView):
    """What a decision on a step would be about now, whether or not it awaits one (kind `early`)."""

    is_whole: bool = Field(default=True, description="Every value in it is known; else it asks again once they are.")
