"""Views of what is recorded beside a plan's steps: log, changes, LLM usage, tool calls."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from plansurvive.plans.model import Value
from plansurvive.plans.step_state import named
from plansurvive.plans.usage import Usage


class EntryView(Value):
    """One line of the log: `plans.log.Entry`, of a kind that this version may not know."""

    seq: int
    time: datetime
    kind: str
    text: str
    code: str | None = Field(default=None, description="Stable code of a rejection or error.")
    subject: str | None = Field(default=None, description="Name of the message, tool or agent concerned.")
    step_id: str | None = None
    status: str = ""
    progress: int | None = Field(default=None, description="Percent.")


class ChangeView(Value):
    """One entry of the change log, without the previous plan."""

    version: int
    by: str = ""
    via: str = ""
    verified: bool = False
    signed: str = Field(default="", description="Whose own key has signed it: a person, `page:` and a page.")
    time: datetime | None = None
    reason: str = ""
    ops: list[str] = Field(default_factory=list)
    diff: list[str] = Field(default_factory=list)

    @property
    def who(self) -> str:
        """The author, with where they spoke and whether the name is verified."""
        return named(self.by, self.via, verified=self.verified)


class TokensView(Usage):
    """LLM usage; all fields are unset if there was no LLM request."""

    seconds: float = 0.0
    by_step: dict[str, int] = Field(default_factory=dict, description='Tokens by step id; planning has the id "".')
    by_model: dict[str, int] = Field(default_factory=dict)
    cost_by_step: dict[str, dict[str, float]] = Field(default_factory=dict, description="By step, then by currency.")
    cost_by_model: dict[str, dict[str, float]] = Field(default_factory=dict)


class ToolCallView(Value):
    """A tool call, with long texts truncated. Each attempt of a call is one."""

    tool: str
    args: dict[str, Any]
    result: str
    timestamp: datetime | None = Field(default=None, description="When it began.")
    sandbox: str = Field(default="", description="Sandbox of its commands: bwrap, landlock, none.")
    asked: dict[str, Any] | None = Field(
        default=None, description="The arguments asked for, if a person replaced them: `args` are those of the call."
    )
    changed_by: str = Field(default="", description="Who replaced them.")
    attempt: int | None = Field(default=None, description="Number of the attempt; only the tool's errors count.")
    duration: float | None = Field(default=None, description="Milliseconds, of an attempt that was recorded.")
    code: str | None = Field(default=None, description="Code of its error; WORKER_LOST if it ended with its worker.")
    delay: float | None = Field(default=None, description="Seconds to the next attempt.")
    plan_id: str | None = Field(default=None, description="The earlier plan that made the call.")
    agent: str | None = Field(default=None, description="The agent that made the call.")
    call: int | None = Field(default=None, description="Its number among the calls of that agent.")
    step_id: str | None = Field(default=None, description="The step inside a block or loop that made the call.")


class AskedView(Value):
    """A decision that a child plan, or one further below, awaits."""

    plan_id: str
    """The plan to decide in."""
    step_id: str
    path: str
    """The step as the parent names it."""
    kind: str = "approval"


class ChildView(Value):
    """The child plan of a step."""

    plan_id: str = Field(default="", description="Empty until it has started.")
    title: str = ""
    kind: str = Field(default="", description="inline, file or template.")
    source: str = Field(default="", description="The path, or NAME@HASH of the template.")
    sha256: str = Field(default="", description="Hash of the content that it runs.")
    status: str = Field(default="", description="As last reported.")
    counts: dict[str, int] = Field(default_factory=dict, description="Its steps by status, and in total.")
    pending: list[AskedView] = Field(default_factory=list, description="Decisions that it awaits.")
    more: int = Field(default=0, description="Number of further ones.")


class ParentView(Value):
    """The plan that a child plan runs for."""

    plan_id: str
    step_id: str


class NoteView(Value):
    """An agents.md that the run has read."""

    path: str
    bytes: int
    step_id: str = ""
