"""Records of a Run: the entries of its log, and its past tool calls."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from pydantic import Field

from plans.model import Value


class LogKind(StrEnum):
    """The kind of a log entry. Histories, records of ended plans and clients contain these values: never change one."""

    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"  # the time limit of an approval has expired
    VOID = "void"  # a decision no longer applies: the arguments have changed
    REMEMBERED = "remembered"  # a tool is approved for the rest of the run
    ASKS = "asks"  # a tool reported that it needs approval after all
    REFUSED = "refused"  # a message was refused
    BEGUN = "begun"  # the review has ended
    PAUSED = "paused"
    UNPAUSED = "unpaused"
    STOPPED = "stopped"  # no further step starts
    RESUMES = "resumes"  # the run resumes another one
    EDITED = "edited"
    MENDING = "mending"  # a step has failed and the LLM is asked about it
    RECOVERY = "recovery"  # the outcome of that
    LLM = "llm"  # an answer was rejected
    BUDGET = "budget"
    AGENT = "agent"  # progress of the agent that does a step
    TASK = "task"  # an agent's task list
    FILES_CHANGED = "files_changed"  # reported by a person or program
    CHANGED = "changed"  # files that changed between a run and its resume
    WARNING = "warning"


class Entry(Value):
    """One entry of the run's log, e.g. a decision, a refusal, a pause. `stepId` is absent if it concerns the plan."""

    seq: int
    time: datetime
    kind: LogKind
    text: str
    code: str | None = Field(default=None, description="Stable code of the refusal or error.")
    subject: str | None = Field(default=None, description="What it concerns: the message, the tool, the agent.")
    step_id: str | None = None
    status: str = Field(default="", description="The step's status at the time, or the plan's.")
    progress: int | None = Field(default=None, description="Progress of the step, in percent.")


class PastCall(Value):
    """A recorded tool call, without its value: of a step before the one that gave its result, or of its agent."""

    tool: str
    args: dict[str, Any] = Field(description="As passed to the tool, long texts truncated.")
    result: str = Field(description="The error, or an agent's result, truncated.")
    time: datetime = Field(description="When it started.")
    sandbox: str = Field(default="", description="Sandbox level of its commands.")
    number: int = Field(default=0, description="Of an agent's call: its number, `call_N`.")
    agent: str = Field(default="", description="The agent that made it.")
    edited_by: str = Field(default="", description="The person who replaced the arguments that the model had chosen.")
