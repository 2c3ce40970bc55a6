"""The entries of a Run's log, and their kinds."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from plansurvive.plans.model import Value


class LogKind(StrEnum):
    """The kind of a log entry. Histories, records of ended plans and clients contain these values: never change one."""

    APPROVED = "approved"
    DENIED = "denied"
    ANSWERED = "answered"  # a question
    EVENT = "event"  # an event arrived, or a step received it
    EXPIRED = "expired"  # the time limit of an approval has expired
    VOID = "void"  # a decision no longer applies: the arguments have changed
    REMEMBERED = "remembered"  # a tool is approved for the rest of the run
    ASKS = "asks"  # a tool reported that it needs approval after all
    REFUSED = "refused"  # a message was refused
    BEGUN = "begun"  # the review has ended
    PAUSED = "paused"
    UNPAUSED = "unpaused"
    STOPPED = "stopped"  # no further step starts
    CLOSING = "closing"  # rollback, `finally`, and cancellations meanwhile
    RESUMES = "resumes"  # the run resumes another one
    EDITED = "edited"
    MENDING = "mending"  # a step has failed and the LLM is asked about it
    RECOVERY = "recovery"  # the outcome of that
    LLM = "llm"  # an answer was rejected
    BUDGET = "budget"
    AGENT = "agent"  # progress of the agent that does a step
    CHILD = "child"  # a child plan began or ended
    TASK = "task"  # an agent's task list
    FILES_CHANGED = "files_changed"  # reported by a person or program
    CLEARED = "cleared"  # file stamps and agents.md shown were forgotten
    CHANGED = "changed"  # files that changed between a run and its resume
    LOCK = "lock"  # the lock on the workspace was asked for, or given
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
