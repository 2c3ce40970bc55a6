"""What a plan answers to those who look at it, as values: PlanView, BriefView, EventView and their parts.

Clients read them from the JSON data that `plans.views.views` builds. What is absent there is not set here, so `to_json`
gives back what was read. Worker and client may be of different versions: reading
ignores fields this version does not know, and every field an older worker may lack has a default.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, Self

from pydantic import Field

from plans.activity_io import LargeValue
from plans.agents.order import AgentLimits, AgentUsage
from plans.agents.tasks import Task
from plans.budget import Usage
from plans.model import Budget, Defaults, Problem, Step, Value
from plans.run import PlanStatus, Status, gc_disabled


class View(Value):
    """An answer of a plan."""

    @classmethod
    def read(cls, answer: Any) -> Self:
        """The view in an answer of a worker of any version: JSON data or, which is faster, JSON text as bytes.

        Raises pydantic's ValidationError.
        """
        with gc_disabled():
            if isinstance(answer, bytes):
                return cls.model_validate_json(answer, extra="ignore")
            return cls.model_validate(answer, extra="ignore")

    def to_json(self) -> dict[str, Any]:
        """The view as JSON data, without what is not set."""
        return self.model_dump(mode="json", exclude_unset=True)


class ResultView(Value):
    """What a step gave. The brief view and events say less of it."""

    ok: bool
    value: Any = Field(default=None, description="Of a value kept elsewhere its preview; of an event its beginning.")
    large: LargeValue | None = Field(default=None, description="Where a value too large for history is kept.")
    error: str | None = None
    code: str | None = Field(default=None, description="Stable code of the error.")
    duration: float = Field(default=0.0, description="Milliseconds.")
    timestamp: datetime | None = Field(default=None, description="When it ended.")
    attempt: int = Field(default=1, description="Attempts used, tool errors counted only.")


class TaskView(Value):
    """One task of the agent that does a step."""

    objective: str
    status: Literal["done", "current", "open"]


class StepView(Step):
    """A step as it was asked for, with what happened to it."""

    order: int = Field(default=0, description="Place in the list, from 0.")
    critical: bool = Field(default=False, description="When it fails, the plan stops.")
    requires_approval: bool = Field(default=False, description="A person decides before it starts.")
    needs: list[str] = Field(default_factory=list, description="Steps it waits for, stated or referred to.")
    status: Status = Status.PENDING
    blocked_by: list[str] = Field(default_factory=list, description="Of these, the ones that are not done.")
    never: bool = Field(default=False, description="Blocked for good.")
    reason: str = Field(default="", description="Why it is blocked for good, or was skipped.")
    deleted: list[str] = Field(default_factory=list, description="Files it deleted.")
    shared_files: list[str] = Field(default_factory=list, description="What a step beside it may have changed.")
    more_files: int = Field(default=0, description="Further files it changed, too many to be listed.")
    warnings: list[str] = Field(default_factory=list, description="What its tool found worth telling.")
    awaiting: str | None = Field(default=None, description="approval: a person is asked; recovery: the LLM.")
    failure: ResultView | None = Field(default=None, description="Its last failure, while the LLM may mend it.")
    mended: str = Field(default="", description="What the LLM did about its last failure, and why.")
    tasks: list[TaskView] = Field(default_factory=list, description="The task list of the agent that does it.")
    result: ResultView | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None


class BriefStep(Value):
    """Of a step what a list of steps shows."""

    id: str
    tool: str
    description: str = ""
    status: Status = Status.PENDING
    seq: int = Field(default=0, description="Number of its last event.")
    args: dict[str, Any] | None = Field(default=None, description="Only where somebody was asked about them.")
    awaiting: str | None = None
    never: bool = False
    tasks: list[TaskView] = Field(default_factory=list)
    result: ResultView | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None


class PendingView(Value):
    """A decision people are asked for."""

    step_id: str
    kind: str
    tool: str
    description: str = ""
    args: dict[str, Any] = Field(default_factory=dict, description="References filled in.")
    since: datetime | None = None
    deadline: datetime | None = None
    version: int = 1


class EntryView(Value):
    """One line of the log: `plans.log.Entry`, of a kind that this version may not know."""

    seq: int
    time: datetime
    kind: str
    text: str
    code: str | None = Field(default=None, description="Stable code of what was refused or went wrong.")
    subject: str | None = Field(default=None, description="What it is about: the message, the tool, the agent.")
    step_id: str | None = None
    status: str = ""
    progress: int | None = Field(default=None, description="In percent.")


class ChangeView(Value):
    """One change of the plan, without the plan before it."""

    version: int
    by: str = ""
    time: datetime | None = None
    reason: str = ""
    ops: list[str] = Field(default_factory=list)
    diff: list[str] = Field(default_factory=list)


class TokensView(Usage):
    """What the LLM took; nothing of it is set when it was never asked."""

    seconds: float = 0.0
    by_step: dict[str, int] = Field(default_factory=dict, description="Tokens; an empty id stands for planning.")
    by_model: dict[str, int] = Field(default_factory=dict)


class ToolCallView(Value):
    """A call of a tool, long texts cut."""

    tool: str
    args: dict[str, Any]
    result: str
    timestamp: datetime | None = None
    sandbox: str = Field(default="", description="How far its commands were shut in.")


class NoteView(Value):
    """An agents.md that the run has read."""

    path: str
    bytes: int
    step_id: str = ""


class AgentView(Value):
    """What there is to say of an agent besides its calls."""

    request: str = ""
    mode: str = "simple"
    tasks: list[Task] = Field(default_factory=list)
    end: str | None = None
    answer: str = ""
    confidence: str | None = None
    usage: AgentUsage = Field(default_factory=AgentUsage)
    limits: AgentLimits = Field(default_factory=AgentLimits)
    plan_id: str | None = Field(default=None, description="The plan it works for, and the step.")
    step_id: str | None = None


class BriefView(View):
    """The joined view in short, cheap for a plan of any size."""

    id: str = ""
    title: str = ""
    version: int = 1
    status: PlanStatus
    seq: int = Field(default=0, description="Number of the last event.")
    started_at: datetime | None = None
    ended_at: datetime | None = None
    counts: dict[str, int] = Field(default_factory=dict, description="Steps by status, and `total`.")
    steps: list[BriefStep] = Field(default_factory=list)
    pending: list[PendingView] = Field(default_factory=list, description="What people are asked, oldest first.")
    log: list[EntryView] = Field(default_factory=list)
    agent: AgentView | None = Field(default=None, description="Of an agent's run: what it does.")


class PlanView(View):
    """The joined view: what was asked, with what happened (seed 004's Plan with statuses and results)."""

    id: str = ""
    task_id: str | None = None
    version: int = 1
    title: str = ""
    workspace: str | None = None
    inputs: dict[str, Any] = Field(default_factory=dict, description="The values given.")
    queue: str | None = None
    max_parallel: int | None = None
    defaults: Defaults = Field(default_factory=Defaults)
    budget: Budget | None = None
    estimated_duration: float | None = None
    created_at: datetime | None = None
    status: PlanStatus
    seq: int = Field(default=0, description="Number of the last event.")
    started_at: datetime | None = None
    ended_at: datetime | None = None
    duration: float = Field(default=0.0, description="Seconds; 0 until it has ended.")
    stopped: str = Field(default="", description="Why no further step may start.")
    resumes: str = Field(default="", description="The plan whose run this one goes on from.")
    counts: dict[str, int] = Field(default_factory=dict, description="Steps by status, and `total`.")
    steps: list[StepView] = Field(default_factory=list)
    pending: list[PendingView] = Field(default_factory=list, description="What people are asked, oldest first.")
    request: str = Field(default="", description="What the plan is to achieve, when the LLM wrote it.")
    problems: list[Problem] = Field(default_factory=list, description="What keeps a draft from beginning.")
    draft: str = Field(default="", description="The LLM's last answer, when no plan could be read in it.")
    changes: list[ChangeView] = Field(default_factory=list, description="The change log, newest last.")
    tokens: TokensView = Field(default_factory=TokensView)
    log: list[EntryView] = Field(default_factory=list)
    step_tool_history: dict[str, list[ToolCallView]] = Field(
        default_factory=dict, alias="step_tool_history", description="By step index the tool calls made for it."
    )
    step_files: dict[str, list[str]] = Field(
        default_factory=dict, alias="step_files", description="By step index the files it made or changed."
    )
    agents_md: list[NoteView] = Field(default_factory=list)
    agent: AgentView | None = Field(default=None, description="Of an agent's run: what it does.")

    def step(self, step_id: str) -> StepView | None:
        """The step of that id."""
        return next((step for step in self.steps if step.id == step_id), None)


class LogLine(Value):
    """What a log entry says, as an event shows it."""

    time: datetime | None = None
    kind: str = ""
    text: str = ""
    code: str | None = None
    subject: str | None = None


class EventView(View):
    """One thing that happened, numbered and dated; to the plan when `stepId` is empty."""

    seq: int
    time: datetime
    task_id: str
    step_id: str
    status: str = Field(description="The step's, or the plan's.")
    progress: int | None = Field(default=None, description="In percent.")
    result: ResultView | None = None
    logs: list[LogLine] | None = Field(default=None, description="Of a log entry its one line.")
