"""The state of a run: one serialisable value, passed whole to continue-as-new.

A Run is a Plan with a state per step, the decisions people made, and a short log. It is compact: large values are
references. Only `plans.execution.schedule` sets a status; `plans.execution.approvals` records decisions. Log entries
and status changes share one counter, `seq`, so that "everything after number N" is well defined (DESIGN 2.2, query
`events`).
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from plans.activity_io import Facts, LargeValue, Logs, Note, PastCall
from plans.budget import Ledger
from plans.change_log import Revision
from plans.file_stamps import FileTracker
from plans.flow.closing_state import Closing
from plans.log import Entry, LogKind
from plans.model import Plan, Problem, Step, Value
from plans.signatures import Signatures

DENIED = "DENIED"
"""Code of a step that was denied."""
LOG_ENTRIES = 200
"""Maximum number of log entries of a run; the oldest is dropped first."""


class Status(StrEnum):
    """Status of a step; no other value is ever shown (seed 004)."""

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
    """Base class of mutable values. Only the workflow that owns the run changes them."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, populate_by_name=True, serialize_by_alias=True)


class Options(Value):
    """Options of a client that starts a plan."""

    workspace: str | None = Field(default=None, description="Absolute directory; overrides the plan's own.")
    granted: list[Annotated[str, Field(max_length=4_096)]] | None = Field(
        default=None,
        max_length=20,
        description="Directories that the plan may work in, with those below them; none: `workspace`. The worker's"
        " settings may allow fewer.",
    )
    max_parallel: int | None = Field(default=None, ge=1, le=100, description="Overrides the plan's own.")
    approve_all: bool = Field(default=False, description="`--yes`: no step awaits approval.")
    review: bool = Field(default=False, description="Wait for `begin` before the first step.")
    inputs: dict[str, Any] = Field(default_factory=dict, description="Values of the plan's inputs.")
    by: str = Field(default="", max_length=200, description="Who started it.")
    split: dict[str, Any] | None = Field(
        default=None,
        description="The request becomes one step of the tool `agent` per task; other arguments of those steps.",
    )
    history_limit: int | None = Field(
        default=None,
        ge=10,
        description="Events after which the workflow continues as new; none: when the server suggests it.",
    )


class Result(Value):
    """The result of a step (seed 004). `value` is absent if `large` says where it is stored."""

    ok: bool
    value: Any = None
    large: LargeValue | None = None
    error: str | None = None
    code: str | None = Field(default=None, description="Stable code of the error.")
    duration: float = Field(default=0.0, description="Milliseconds.")
    timestamp: datetime = Field(description="When it ended, UTC.")
    attempt: int = Field(default=1, description="Attempts used; only errors of the tool count.")
    logs: Logs | None = Field(default=None, description="What the commands of the successful attempt wrote.")


class Change(NamedTuple):
    """A status change of a step. `seq` numbers all changes of a run. A tuple, since there are four of them per step."""

    seq: int
    time: datetime
    status: Status


class Decision(Value):
    """A decision on an approval, made by a person or by its time limit."""

    approved: bool
    by: str = ""
    comment: str = ""
    args: dict[str, Any] | None = None
    version: int | None = Field(default=None, description="The plan's version when it was made.")
    args_hash: str = Field(default="", description="Hash of its arguments, for runs from before there were digests.")
    digest: str = Field(default="", description="The call it covers (`plans.step_call`); empty: values were unknown.")
    unchecked: bool = Field(default=False, description="Made before the check: the workspace was not known yet.")
    remembered: bool = Field(default=False, description="Follows from an approval of another step, with `remember`.")
    time: datetime
    source: Literal["signal", "update", "timeout"] = "signal"


class StepState(State):
    """The state of one step."""

    status: Status = Status.PENDING
    awaiting: Literal["approval", "recovery"] | None = None
    never: bool = Field(default=False, description="Permanently blocked; of a skipped step: its dependents are.")
    reason: str = Field(default="", description="Why it is permanently blocked, or was skipped.")
    result: Result | None = None
    args: dict[str, Any] | None = Field(default=None, description="The approver's arguments, which replace the plan's.")
    changes: list[Change] = Field(default_factory=list)
    calls: int = Field(default=0, description="Activities started for it.")
    deadline: datetime | None = Field(default=None, description="When the approval expires or the sleep ends.")
    asked: dict[str, Any] | None = Field(default=None, description="The arguments shown to the approver.")
    asks: dict[int, str] = Field(default_factory=dict, description="Digests shown to approvers, by number of change.")
    showed: dict[int, dict[str, Any]] = Field(default_factory=dict, description="Arguments shown before `asked`, cut.")
    failure: Result | None = Field(default=None, description="Its last failure, while it awaits recovery.")
    proposal: dict[str, Any] | None = Field(default=None, description="The LLM's recovery, while a person decides.")
    recoveries: int = Field(default=0, description="How often the LLM was asked to recover it.")
    mended: str = Field(default="", description="How the LLM recovered it from its last failure, and why.")
    past: list[PastCall] = Field(default_factory=list, description="Its calls before the one with its value.")
    more_past: int = Field(default=0, description="Number of earlier ones, not listed.")
    earlier: dict[str, int] = Field(default_factory=dict, description="Of these, how many by tool, as far as known.")
    sent: dict[str, Any] | None = Field(
        default=None, description="Arguments of the last call, long texts truncated, if other than the plan's."
    )
    sandbox: str = Field(default="", description="Sandbox level of the commands of its last call.")
    wrote: list[str] = Field(default_factory=list, description="Files and directories it created or changed.")
    deleted: list[str] = Field(default_factory=list, description="Files it deleted.")
    shared: list[str] = Field(default_factory=list, description="Of these, what a concurrent step may have changed.")
    shared_with: list[str] = Field(default_factory=list, description="The steps that may have changed those instead.")
    more_files: int = Field(default=0, description="Number of further files it changed, not listed.")
    warnings: list[str] = Field(default_factory=list, description="Warnings of its tool.")
    notes: str = Field(default="", description="What its agent said about its work: summaries of tasks, its answer.")
    tasks: list[str] = Field(default_factory=list, description="The task list of its agent, in order.")
    tasks_done: int = Field(default=0, description="How many of them are done, counted from the first.")
    closes: Literal["", "undo", "finally"] = Field(default="", description="It closes the plan (`flow.closing_steps`).")

    @property
    def digest(self) -> str:
        """The digest of what an approver was last shown; empty if none was."""
        return next(reversed(self.asks.values()), "")

    @property
    def is_denied(self) -> bool:
        """Whether a person, or the time limit of its approval, denied it."""
        return self.status is Status.SKIPPED and self.result is not None and self.result.code == DENIED

    @property
    def began(self) -> datetime | None:
        """When it was last started."""
        return next((change.time for change in reversed(self.changes) if change.status is Status.RUNNING), None)

    @property
    def ended(self) -> datetime | None:
        """When it last completed, failed or was skipped."""
        return next((change.time for change in reversed(self.changes) if change.status in DONE), None)


class Run(State):
    """A plan and the state of its execution."""

    plan: Plan
    request: str = Field(default="", description="What the plan should achieve, if the LLM drafted it.")
    problems: list[Problem] = Field(default_factory=list, description="Errors that prevent a draft from starting.")
    draft: str = Field(default="", description="The LLM's last answer, if it contains no valid plan.")
    revisions: list[Revision] = Field(default_factory=list, description="The change log, newest last.")
    ledger: Ledger = Field(default_factory=Ledger, description="Tokens and requests spent on the LLM.")
    llm_calls: int = Field(default=0, description="Number of LLM requests made or tried.")
    llm_seconds: float = Field(default=0.0, description="Seconds spent on LLM requests.")
    recoveries: int = Field(default=0, description="How often the LLM was asked to recover a step.")
    aborted: bool = Field(default=False, description="Recovery decided to abort the plan.")
    options: Options = Field(default_factory=Options)
    facts: Facts = Field(default_factory=Facts)
    inputs: dict[str, Any] = Field(default_factory=dict)
    status: PlanStatus = PlanStatus.DRAFT
    steps: dict[str, StepState]
    decisions: dict[str, Decision] = Field(default_factory=dict)
    remembered: dict[str, str] = Field(default_factory=dict, description="Calls approved for the run, and by whom.")
    edited: dict[str, str] = Field(default_factory=dict, description="By step, the mark of `execution.approvals`.")
    files: FileTracker = Field(default_factory=FileTracker, description="File stamps, and the agents.md shown.")
    notes: list[Note] = Field(default_factory=list, description="The agents.md texts in use, parents before children.")
    log: list[Entry] = Field(default_factory=list)
    seq: int = 0
    created: datetime | None = Field(default=None, description="When its plan's first run began to exist.")
    started: datetime | None = None
    ended: datetime | None = None
    retried: int = Field(default=0, description="Retried attempts recorded one by one (`execution.tool_history`).")
    stopped: str = Field(default="", description="Why no further step may start: a critical failure, a cancellation.")
    interrupted: bool = Field(default=False, description="Interrupted by a person; can be resumed.")
    denied: list[str] = Field(default_factory=list, description="Denied in the run before: they ask, waived or not.")
    closing: Closing | None = Field(default=None, description="How far rollback and `finally` are, once begun.")
    literal: bool = Field(default=False, description="Arguments contain no references: those of an agent's calls.")
    resumes: str = Field(default="", description="Id of the plan that this run resumes.")
    unsigned: bool = Field(default=False, description="Started without the signature that its worker asks for.")
    signatures: Signatures = Field(default_factory=Signatures, description="Signed messages that were honoured.")
    agents: dict[str, dict[str, Any]] = Field(default_factory=dict, description="By step, the agent run to resume.")

    @classmethod
    def of(cls, plan: Plan, options: Options, facts: Facts, inputs: dict[str, Any]) -> Run:
        """A new run, with all steps pending."""
        return cls(
            plan=plan, options=options, facts=facts, inputs=inputs, steps={s.id: StepState() for s in plan.steps}
        )

    @property
    def paused(self) -> bool:
        """Whether no step may start for now."""
        return self.status is PlanStatus.PAUSED

    def next_seq(self) -> int:
        """The next sequence number, for a change or a log entry."""
        self.seq += 1
        return self.seq

    def note(
        self, kind: LogKind, text: str, time: datetime, step_id: str | None = None, *,
        code: str | None = None, subject: str | None = None, progress: int | None = None,
    ) -> None:  # fmt: skip
        """Add a log entry; drops the oldest one when the log is full."""
        self.log.append(Entry(
            seq=self.next_seq(), time=time, kind=kind, text=text[:1_000], code=code, subject=subject, step_id=step_id,
            status=self.steps[step_id].status if step_id else self.status, progress=progress,
        ))  # fmt: skip
        del self.log[:-LOG_ENTRIES]

    def queue_of(self, step: Step) -> str | None:
        """The task queue the step is bound to; None: the workflow's own."""
        return step.queue or self.plan.queue

    def workspace_of(self, step: Step) -> str:
        """The directory the step works in, on the workers of its queue."""
        return self.facts.workspaces.get(step.queue or "", self.facts.workspace)

    def args_of(self, step: Step) -> dict[str, Any]:
        """The step's arguments, as changed by the approver if they were."""
        changed = self.steps[step.id].args
        return step.args if changed is None else changed


def text_of(run: Run) -> str:
    """The Run as JSON, defaults omitted: the input of continue-as-new, and the record of an ended plan."""
    return run.model_dump_json(exclude_defaults=True)


def run_of(text: str | bytes) -> Run:
    """Parse a Run from its JSON. Raises pydantic's ValidationError."""
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
