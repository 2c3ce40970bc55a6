"""The log of a Run: its entries, and the kinds of them."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from plans.model import Value


class LogKind(StrEnum):
    """What a log entry is about. Histories, records of ended plans and clients have these values: none may change."""

    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"  # nobody decided in time
    VOID = "void"  # a decision was about other arguments
    REMEMBERED = "remembered"  # a tool is approved for the rest of the run
    ASKS = "asks"  # a tool found that it needs an approval
    REFUSED = "refused"  # a message was refused
    BEGUN = "begun"  # the review has ended
    PAUSED = "paused"
    UNPAUSED = "unpaused"
    STOPPED = "stopped"  # nothing starts any more
    RESUMES = "resumes"  # the run goes on from another
    EDITED = "edited"
    MENDING = "mending"  # a step has failed and the LLM is asked about it
    RECOVERY = "recovery"  # what became of that
    LLM = "llm"  # an answer was not accepted
    BUDGET = "budget"
    AGENT = "agent"  # progress of the agent that does a step
    TASK = "task"  # an agent's task list
    FILES_CHANGED = "files_changed"  # somebody says so
    CHANGED = "changed"  # files were found changed on resume
    WARNING = "warning"


class Entry(Value):
    """One line of the run's log: a decision, a refusal, a pause. `stepId` is absent when it concerns the plan."""

    seq: int
    time: datetime
    kind: LogKind
    text: str
    code: str | None = Field(default=None, description="Stable code of what was refused or went wrong.")
    subject: str | None = Field(default=None, description="What it is about: the message, the tool, the agent.")
    step_id: str | None = None
    status: str = Field(default="", description="The step's status at the time, or the plan's.")
    progress: int | None = Field(default=None, description="How much of the step is done, in percent.")
