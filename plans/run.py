"""What happened to a plan: one serialisable value, carried whole by continue-as-new.

A Run is a Plan with a state per step, the decisions people made, and a short log. It is compact: results are views, big
values are references. Only `plans.execution.schedule` sets a status; `plans.execution.approvals` records decisions.
Steps, log entries and status changes share one counter, `seq`, so that "everything after number N" has one meaning
(DESIGN 2.2, query `events`).
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from plans.activity_io import Facts, LargeValue, Note
from plans.budget import Ledger
from plans.change_log import Revision
from plans.file_stamps import FileTracker
from plans.model import Plan, Problem, Step, Value

LOG_ENTRIES = 200
"""Log entries a run keeps; the oldest go first."""


class Status(StrEnum):
    """Status of a step (seed 004). No other value ever leaves the system."""

    PENDING = "pending"
    BLOCKED = "blocked"
    READY = "ready"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    SKIPPED = "skipped"


class PlanStatus(StrEnum):
    """Status of a plan (DESIGN 2.2)."""

    DRAFT = "draft"
    REVIEW = "review"
    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    PARTIAL = "partial"
    FAILED = "failed"
    CANCELLED = "cancelled"


ENDED = frozenset({PlanStatus.COMPLETED, PlanStatus.PARTIAL, PlanStatus.FAILED, PlanStatus.CANCELLED})
DONE = frozenset({Status.COMPLETED, Status.FAILED, Status.SKIPPED})


class State(BaseModel):
    """Base of the values that change while a plan runs. Only the workflow that owns the run changes them."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, populate_by_name=True, serialize_by_alias=True)


class Options(Value):
    """How a client wants a plan run."""

    workspace: str | None = Field(default=None, description="Absolute directory; the plan's own comes second.")
    max_parallel: int | None = Field(default=None, ge=1, le=100, description="Comes before the plan's own.")
    approve_all: bool = Field(default=False, description="`--yes`: nobody is asked.")
    review: bool = Field(default=False, description="Wait for `begin` before the first step.")
    inputs: dict[str, Any] = Field(default_factory=dict, description="Values of the plan's inputs.")
    by: str = Field(default="", max_length=200, description="Who started it.")
    split: dict[str, Any] | None = Field(
        default=None,
        description="The request becomes one step of the tool `agent` per task; these are their other arguments.",
    )
    history_limit: int | None = Field(
        default=None, ge=10, description="Events after which the workflow continues as new; none: when the server says."
    )


class Result(Value):
    """What a step gave (seed 004). `value` is absent when `large` says where it is kept."""

    ok: bool
    value: Any = None
    large: LargeValue | None = None
    error: str | None = None
    code: str | None = Field(default=None, description="Stable code of the error.")
    duration: float = Field(default=0.0, description="Milliseconds.")
    timestamp: datetime = Field(description="When it ended, UTC.")
    attempt: int = Field(default=1, description="Attempts used, tool errors counted only.")


class Change(NamedTuple):
    """A step took a status at a time; `seq` numbers all changes of a run. A tuple: there are four of them per step."""

    seq: int
    time: datetime
    status: Status


class Decision(Value):
    """What somebody decided on an approval."""

    approved: bool
    by: str = ""
    comment: str = ""
    args: dict[str, Any] | None = None
    version: int | None = Field(default=None, description="The plan's version it is about.")
    args_hash: str = Field(default="", description="Hash of the arguments it is about; others are asked for again.")
    time: datetime
    source: Literal["signal", "update", "timeout"] = "signal"


class Entry(Value):
    """One line of the run's log: a decision, a refusal, a pause. `stepId` is absent when it concerns the plan."""

    seq: int
    time: datetime
    kind: str
    text: str
    step_id: str | None = None
    status: str = Field(default="", description="The step's status at the time, or the plan's.")
    progress: int | None = Field(default=None, description="How much of the step is done, in percent.")


class PastCall(Value):
    """A call of a tool that gave no value: it failed, or found that it needs a person's approval."""

    tool: str
    args: dict[str, Any] = Field(description="As the tool was given them, long texts cut.")
    result: str = Field(description="What came of it, cut.")
    time: datetime = Field(description="When it began.")
    sandbox: str = Field(default="", description="How far its commands were shut in.")


class StepState(State):
    """What happened to one step so far."""

    status: Status = Status.PENDING
    awaiting: Literal["approval", "recovery"] | None = None
    never: bool = Field(default=False, description="Blocked for good.")
    reason: str = Field(default="", description="Why it is blocked for good, or was skipped.")
    result: Result | None = None
    args: dict[str, Any] | None = Field(default=None, description="Arguments the approver put in place of the plan's.")
    changes: list[Change] = Field(default_factory=list)
    calls: int = Field(default=0, description="Activities started for it.")
    deadline: datetime | None = Field(default=None, description="When the approval or the sleep is over.")
    asked: dict[str, Any] | None = Field(default=None, description="The arguments shown to the approver.")
    failure: Result | None = Field(default=None, description="Its last failure, while the LLM may mend it.")
    proposal: dict[str, Any] | None = Field(
        default=None, description="What the LLM wants done, for a person to decide."
    )
    recoveries: int = Field(default=0, description="How often the LLM was asked to mend it.")
    mended: str = Field(default="", description="What the LLM did about its last failure, and why.")
    past: list[PastCall] = Field(default_factory=list, description="Its calls before the one that gave the result.")
    sent: dict[str, Any] | None = Field(
        default=None, description="Arguments of the last call, long texts cut, where they are not the plan's own."
    )
    sandbox: str = Field(default="", description="How far the commands of its last call were shut in.")
    wrote: list[str] = Field(default_factory=list, description="Files and directories it made or changed.")
    deleted: list[str] = Field(default_factory=list, description="Files it deleted.")
    shared: list[str] = Field(default_factory=list, description="Of these, what a step beside it may have done.")
    more_files: int = Field(default=0, description="Further files it changed, too many to be listed.")
    warnings: list[str] = Field(default_factory=list, description="What its tool found worth telling.")
    tasks: list[str] = Field(default_factory=list, description="The task list of the agent that does it, in order.")
    tasks_done: int = Field(default=0, description="How many of them are done, from the first on.")

    @property
    def began(self) -> datetime | None:
        """When it was started last."""
        return next((change.time for change in reversed(self.changes) if change.status is Status.RUNNING), None)

    @property
    def ended(self) -> datetime | None:
        """When it was done last."""
        return next((change.time for change in reversed(self.changes) if change.status in DONE), None)


class Run(State):
    """A plan and what happened to it."""

    plan: Plan
    request: str = Field(default="", description="What the plan is to achieve, when the LLM wrote it.")
    problems: list[Problem] = Field(default_factory=list, description="What keeps a draft from beginning.")
    draft: str = Field(default="", description="The LLM's last answer, when no plan could be read in it.")
    revisions: list[Revision] = Field(default_factory=list, description="The change log, newest last.")
    ledger: Ledger = Field(default_factory=Ledger, description="What the LLM calls took.")
    llm_calls: int = Field(default=0, description="LLM calls made or tried, by which each gets its number.")
    llm_seconds: float = Field(default=0.0, description="Time the LLM took.")
    recoveries: int = Field(default=0, description="How often the LLM was asked to mend a step.")
    aborted: bool = Field(default=False, description="Recovery said abort.")
    options: Options = Field(default_factory=Options)
    facts: Facts = Field(default_factory=Facts)
    inputs: dict[str, Any] = Field(default_factory=dict)
    status: PlanStatus = PlanStatus.DRAFT
    steps: dict[str, StepState]
    decisions: dict[str, Decision] = Field(default_factory=dict)
    remembered: dict[str, str] = Field(default_factory=dict, description="Tools approved for this run, and by whom.")
    files: FileTracker = Field(default_factory=FileTracker, description="Files and agents.md as the run saw them.")
    notes: list[Note] = Field(default_factory=list, description="The agents.md brought in, parents before children.")
    log: list[Entry] = Field(default_factory=list)
    seq: int = 0
    started: datetime | None = None
    ended: datetime | None = None
    stopped: str = Field(default="", description="Why no further step may start: a critical failure, a cancellation.")
    interrupted: bool = Field(default=False, description="Somebody interrupted it, to be resumed.")
    literal: bool = Field(default=False, description="Arguments are as they stand: an agent's hold no references.")
    resumes: str = Field(default="", description="The plan whose run this one goes on from.")
    agents: dict[str, dict[str, Any]] = Field(
        default_factory=dict, description="By step, the run of the agent that goes on with it (`plans.agents.run`)."
    )

    @classmethod
    def of(cls, plan: Plan, options: Options, facts: Facts, inputs: dict[str, Any]) -> Run:
        """A run of a plan in which nothing has happened yet."""
        steps = {step.id: StepState() for step in plan.steps}
        return cls(plan=plan, options=options, facts=facts, inputs=inputs, steps=steps)

    @property
    def paused(self) -> bool:
        """Whether no step may start for now."""
        return self.status is PlanStatus.PAUSED

    def next_seq(self) -> int:
        """The next number for a change or a log entry."""
        self.seq += 1
        return self.seq

    def note(
        self, kind: str, text: str, time: datetime, step_id: str | None = None, progress: int | None = None
    ) -> None:
        """Add a line to the log; the oldest line goes when it is full."""
        status, seq = self.steps[step_id].status if step_id else self.status, self.next_seq()
        self.log.append(
            Entry(seq=seq, time=time, kind=kind, text=text[:1_000], step_id=step_id, status=status, progress=progress)
        )
        if len(self.log) > LOG_ENTRIES:
            del self.log[0]

    def queue_of(self, step: Step) -> str | None:
        """The task queue the step is bound to; none: the workflow's own."""
        return step.queue or self.plan.queue

    def workspace_of(self, step: Step) -> str:
        """The directory the step works in, on the workers of its queue."""
        return self.facts.workspaces.get(step.queue or "", self.facts.workspace)

    def args_of(self, step: Step) -> dict[str, Any]:
        """The step's arguments, the approver's where they were changed."""
        changed = self.steps[step.id].args
        return step.args if changed is None else changed


def text_of(run: Run) -> str:
    """The Run as JSON text, defaults left out: what continue-as-new carries and what is kept of an ended plan."""
    return run.model_dump_json(exclude_defaults=True)


def run_of(text: str | bytes) -> Run:
    """The Run of a text; raises pydantic's ValidationError."""
    with gc_disabled():
        return Run.model_validate_json(text)


@contextmanager
def gc_disabled() -> Iterator[None]:
    """Disable the garbage collector while a Run is parsed: with it enabled, a Run of 10,000 steps takes 4x as long.

    A parsed Run has no cycles, and nothing a workflow decides depends on the collector.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
