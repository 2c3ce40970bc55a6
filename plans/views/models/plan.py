"""Views of a plan and its steps.

Models for clients, JSON data by workers: views of 10,000 steps from models took 1.6 to 2 times as long, in a query that
blocks the workflow. Unknown fields are ignored and missing ones have defaults, which a TypedDict cannot do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from plansurvive.plans.model import Budget, Defaults, Problem, Step, Undo, Value
from plansurvive.plans.model.express import Express
from plansurvive.plans.model.notify import NotifyRule
from plansurvive.plans.model.shares import Fairness
from plansurvive.plans.notice import Notice
from plansurvive.plans.run import PlanStatus, Status
from plansurvive.plans.step_state import DENIALS, Answered, named
from plansurvive.plans.views.models.agents import AgentAsksView, AgentView
from plansurvive.plans.views.models.card import Card
from plansurvive.plans.views.models.live import LiveView
from plansurvive.plans.views.models.nested import InsideView
from plansurvive.plans.views.models.records import (
    ChangeView,
    ChildView,
    EntryView,
    NoteView,
    ParentView,
    TokensView,
    ToolCallView,
)
from plansurvive.plans.views.models.result import ResultView
from plansurvive.plans.views.models.view import View

IN_ORDER = ("running", "completed", "failed", "skipped", *DENIALS.values(), "ready", "blocked", "pending")
"""The statuses of steps, in the order in which they are counted."""


class TaskView(Value):
    """One task of the agent that works on a step."""

    objective: str
    status: Literal["done", "current", "open"]


class DecisionView(Value):
    """The decision on a step's approval."""

    approved: bool
    by: str = ""
    comment: str = ""
    time: datetime | None = None
    source: str = Field(default="signal", description="signal, update, or timeout: its time limit decided.")
    via: str = Field(default="", description="Where the person decided: web, link, mcp; empty: by command or program.")
    verified: bool = Field(default=False, description="A login or the person's own key has verified the name.")
    signed: str = Field(default="", description="Whose own key has signed it: a person, `page:` and a page.")
    remembered: bool = Field(default=False, description="It follows from an approval of another step.")
    changed_args: bool = Field(default=False, description="The approver replaced the arguments.")

    @property
    def who(self) -> str:
        """The name, with what is known of how it came in; empty without one."""
        return named(self.by, self.via, verified=self.verified)


class UndoView(Undo):
    """The undo of a step, and what became of it once the plan rolls back."""

    status: str = Field(default="", description="pending, running, completed, failed, or skipped: a person denied it.")
    result: ResultView | None = None


class ClosingView(Value):
    """How far a plan is in being closed: rolled back, and then its `finally`."""

    phase: str = Field(description="rollback or finally.")
    ends: str = Field(description="The status it ends with, unless a step of its `finally` fails.")
    cancelled: bool = Field(default=False, description="It was cancelled; another time ends it at once.")
    undo: dict[str, int] = Field(default_factory=dict, description="Steps to undo, by what became of it.")


class StepView(Step):
    """A step of the plan with its status and result."""

    id: str = Field(description="Names the step; at run time there are more than the author named.")
    depends_on: list[str] = Field(default_factory=list)
    closes: str = Field(default="", description="It closes the plan: undo or finally.")
    undo: UndoView | None = None
    order: int = Field(default=0, description="Index in the list of steps, from 0.")
    critical: bool = Field(default=False, description="The plan stops if the step fails.")
    requires_approval: bool = Field(default=False, description="The step needs a person's approval to start.")
    needs: list[str] = Field(
        default_factory=list, description="Ids of steps it depends on, including those it references."
    )
    status: Status = Status.PENDING
    blocked_by: list[str] = Field(default_factory=list, description="Those of `needs` that are not done.")
    permanently_blocked: bool = Field(default=False, alias="never", description="It can never start.")
    reason: str = Field(default="", description="Why it is permanently blocked, or was skipped.")
    deleted: list[str] = Field(default_factory=list, description="Files it deleted.")
    shared_files: list[str] = Field(default_factory=list, description="Files that a concurrent step may have changed.")
    shared_with: list[str] = Field(default_factory=list, description="The steps that may have changed those instead.")
    more_files: int = Field(default=0, description="Number of further changed files that are not listed.")
    more_calls: int = Field(default=0, description="Number of earlier tool calls that are not listed.")
    warnings: list[str] = Field(default_factory=list, description="Warnings of its tool.")
    awaiting: str | None = Field(
        default=None, description="approval, answer: of a person; event; recovery: of the LLM."
    )
    decision: DecisionView | None = None
    answer: Answered | None = Field(default=None, description="Who answered its question.")
    failure: ResultView | None = Field(
        default=None, description="The last failure, while the LLM may recover the step."
    )
    mended: str = Field(default="", description="How the LLM recovered it from its last failure, and why.")
    tasks: list[TaskView] = Field(default_factory=list, description="Task list of the agent that works on it.")
    child: ChildView | None = Field(default=None, description="The plan that it runs.")
    agent_asks: AgentAsksView | None = Field(default=None, description="What its agent asks people.")
    result: ResultView | None = None
    inside: InsideView | None = Field(default=None, description="What is inside it, once it has begun.")
    instances: list[BriefStep] = Field(default_factory=list, description="Steps inside it; first those in trouble.")
    more_instances: int = Field(default=0, description="Number of the others: the query `inside` lists them.")
    started_at: datetime | None = None
    ended_at: datetime | None = None

    @property
    def never(self) -> bool:
        """`permanently_blocked`, by its name in JSON."""
        return self.permanently_blocked


class BriefStep(Value):
    """The fields of a step that a list of steps shows. Of a step inside a loop, `id` names the instance."""

    id: str
    tool: str
    description: str = ""
    status: Status = Status.PENDING
    seq: int = Field(default=0, description="Number of its last event.")
    closes: str = Field(default="", description="It closes the plan: undo or finally.")
    undo: str = Field(default="", description="What became of its undo, once the plan rolls back.")
    args: dict[str, Any] | None = Field(default=None, description="As last asked about, if approval was requested.")
    digest: str = Field(default="", description="Digest of what `args` are part of.")
    awaiting: str | None = None
    permanently_blocked: bool = Field(default=False, alias="never")
    tasks: list[TaskView] = Field(default_factory=list)
    child: ChildView | None = None
    agent_asks: AgentAsksView | None = Field(default=None, description="What its agent asks people.")
    until: datetime | None = Field(default=None, description="When its sleep ends.")
    live: LiveView | None = Field(default=None, description="What clients add about its running attempt.")
    kind: str = Field(default="call", description="call; or what is inside: block, switch, each or repeat.")
    item: str = Field(default="", description="The items of the loops around it, cut.")
    inside: InsideView | None = Field(default=None, description="What is inside it, once it has begun.")
    instances: list[BriefStep] = Field(default_factory=list, description="A few of the steps inside it.")
    more_instances: int = Field(default=0, description="Number of the others.")
    result: ResultView | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None

    @property
    def never(self) -> bool:
        """`permanently_blocked`, by its name in JSON."""
        return self.permanently_blocked


def listed_steps(steps: Iterable[BriefStep]) -> Iterator[BriefStep]:
    """The steps, each followed by what is listed of its inside."""
    for step in steps:
        yield step
        yield from step.instances


class InnerStep(BriefStep):
    """A step inside a block or loop, with its whole result."""

    reason: str = Field(default="", description="Why it is permanently blocked, or was skipped.")
    files: list[str] = Field(default_factory=list, description="Files and directories it created or changed.")
    needs: list[str] = Field(
        default_factory=list, description="Ids of steps it depends on; with what follows, if named."
    )
    notes: str = ""
    mended: str = ""
    deleted: list[str] = Field(default_factory=list)
    warnings: list[str] = Field(default_factory=list)
    calls: list[ToolCallView] = Field(default_factory=list, description="Its last calls and attempts.")
    more_calls: int = Field(default=0, description="Number of those before them.")
    decision: DecisionView | None = None
    answer: Answered | None = None


class InsidePage(View):
    """What is inside a block or loop: the answer to the query `inside`."""

    step: InnerStep | None = Field(default=None, description="The step that was asked for; none for a pattern.")
    steps: list[InnerStep] = Field(description="The steps inside it, or those that fit the pattern.")
    next: int | None = Field(default=None, description="`since` of the query for the others.")
    done: int = Field(default=0, description="How many were left out, completed or skipped, if that was asked for.")


class HostView(View):
    """The host that a plan's files are at."""

    name: str = Field(description="PLANS_HOST of its workers.")
    queue: str = Field(description="The task queue that only its workers poll.")


class BriefView(View):
    """The brief view: cheap to build and send for a plan of any size."""

    id: str = ""
    task_id: str | None = None
    title: str = ""
    version: int = 1
    created_at: datetime | None = None
    estimated_duration: float | None = Field(default=None, description="Seconds, as the plan's author estimated.")
    status: PlanStatus
    seq: int = Field(default=0, description="Number of the last event.")
    started_at: datetime | None = None
    ended_at: datetime | None = None
    deadline: datetime | None = Field(default=None, description="When it must have ended; none once it is closed.")
    counts: dict[str, int] = Field(
        default_factory=dict, description="Steps by status, `denied`, `unanswered` apart; `total`."
    )
    closing: ClosingView | None = Field(default=None, description="Once it is being closed.")
    notices: dict[str, Notice] = Field(default_factory=dict, description="Notices about it as a whole, by feature.")
    host: HostView | None = Field(default=None, description="Where its files are, if workers have a workspace each.")
    steps: list[BriefStep] = Field(default_factory=list)
    templates: list[BriefStep] = Field(default_factory=list, description="Steps inside others, as the plan has them.")
    inside: dict[str, int] = Field(
        default_factory=dict, description="Steps inside others by status; `total`: with those known to come."
    )
    pending: list[Card] = Field(default_factory=list, description="Pending decisions, oldest first.")
    more_pending: dict[str, int] = Field(
        default_factory=dict, description="Number of further ones by pattern, as in `resize[*]`."
    )
    tokens: TokensView = Field(default_factory=TokensView, description="LLM usage so far.")
    log: list[EntryView] = Field(default_factory=list)
    agent: AgentView | None = Field(default=None, description="For an agent's run: its state.")
    since: int | None = Field(
        default=None, description="Number of the event after which listed steps may differ and the log begins."
    )

    @property
    def resting(self) -> dict[str, int]:
        """Its steps by status, less those that await something: these are counted by what they await."""
        awaiting = Counter(step.status.value for step in self.steps if step.awaiting and not step.closes)
        numbers = {name: self.counts.get(name, 0) - awaiting[name] for name in IN_ORDER}
        return {name: number for name, number in numbers.items() if number > 0}


class PlanView(View):
    """The full view: the plan joined with statuses and results (seed 004)."""

    id: str = ""
    task_id: str | None = None
    version: int = 1
    title: str = ""
    workspace: str | None = None
    host: HostView | None = Field(default=None, description="Where that is, if workers have a workspace each.")
    inputs: dict[str, Any] = Field(default_factory=dict, description="Values of the inputs.")
    queue: str | None = None
    max_parallel: int | None = None
    priority: int | None = None
    fairness: Fairness | None = None
    timeout: float | None = Field(default=None, description="Seconds that it may take, from its beginning.")
    deadline: datetime | None = Field(default=None, description="When it must have ended; none once it is closed.")
    defaults: Defaults = Field(default_factory=Defaults)
    budget: Budget | None = None
    estimated_duration: float | None = None
    created_at: datetime | None = None
    status: PlanStatus
    seq: int = Field(default=0, description="Number of the last event.")
    started_at: datetime | None = None
    ended_at: datetime | None = None
    duration: float = Field(default=0.0, description="Seconds; 0 until the plan has ended.")
    stopped: str = Field(default="", description="Why no further step may start.")
    resumes: str = Field(default="", description="Id of the plan that this one resumes.")
    parent: ParentView | None = Field(default=None, description="The plan that it runs for, as a step of it.")
    value: ResultView | None = Field(default=None, description="Its value: `outputs`, once it has ended.")
    unsigned: bool = Field(default=False, description="Started unsigned where that is asked for: waivers are ignored.")
    counts: dict[str, int] = Field(
        default_factory=dict, description="Steps by status, `denied`, `unanswered` apart; `total`."
    )
    closing: ClosingView | None = Field(default=None, description="Once it is being closed.")
    notices: dict[str, Notice] = Field(default_factory=dict, description="Notices about it as a whole, by feature.")
    labels: dict[str, str] = Field(default_factory=dict)
    workspace_lock: bool = False
    steps: list[StepView] = Field(default_factory=list)
    finally_: list[Step] | None = Field(default=None, alias="finally")
    outputs: dict[str, str] = Field(default_factory=dict)
    rollback: bool = False
    cache: bool | None = None
    express: bool | Express | None = None
    owns: list[str] = Field(default_factory=list)
    notify: list[NotifyRule] = Field(default_factory=list)
    pending: list[Card] = Field(default_factory=list, description="Pending decisions, oldest first.")
    more_pending: dict[str, int] = Field(
        default_factory=dict, description="Number of further ones by pattern, as in `resize[*]`."
    )
    request: str = Field(default="", description="The user's request, if the LLM wrote the plan.")
    problems: list[Problem] = Field(default_factory=list, description="Problems that keep a draft from starting.")
    draft: str = Field(default="", description="The LLM's last answer, if it was not a valid plan.")
    changes: list[ChangeView] = Field(default_factory=list, description="The change log, newest last.")
    tokens: TokensView = Field(default_factory=TokensView)
    log: list[EntryView] = Field(default_factory=list)
    step_tool_history: dict[str, list[ToolCallView]] = Field(
        default_factory=dict, alias="step_tool_history", description="Tool calls by step index."
    )
    step_files: dict[str, list[str]] = Field(
        default_factory=dict, alias="step_files", description="Files written by step index."
    )
    step_files_shared: dict[str, dict[str, str]] = Field(
        default_factory=dict, alias="step_files_shared", description="Of those, whose they may be, by index and path."
    )
    agents_md: list[NoteView] = Field(default_factory=list)
    agent: AgentView | None = Field(default=None, description="For an agent's run: its state.")

    def step(self, step_id: str) -> StepView | None:
        """The step with that id; None if there is none."""
        return next((step for step in self.steps if step.id == step_id), None)


class CallView(View, Card):
    """What a decision on a step would be about now, whether or not it awaits one (kind `early`)."""

    is_whole: bool = Field(default=True, description="Every value in it is known; else it asks again once they are.")
    decided: str = Field(
        default="", description="The decision that counts, as a sentence, if there is one; omitted otherwise."
    )
