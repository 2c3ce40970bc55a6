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
from typing import Annotated, Any, ClassVar

from pydantic import Field, PrivateAttr

from plansurvive.plans.activity_io import Facts, Note
from plansurvive.plans.change_log import Revision
from plansurvive.plans.child_state import ParentLink
from plansurvive.plans.definition.language import PLAIN, Language
from plansurvive.plans.directory import DirectoryIdentity
from plansurvive.plans.file_stamps import FileTracker
from plansurvive.plans.flow.batch_part import Batch, Family
from plansurvive.plans.flow.closing_state import Closing
from plansurvive.plans.flow.opened import Kept, Opened
from plansurvive.plans.flow.outline import Drawn, Outline
from plansurvive.plans.hosts.host import Host, Placed
from plansurvive.plans.in_views import NO_VIEWS, ViewSet
from plansurvive.plans.log import Entry, LogKind
from plansurvive.plans.model import Plan, Problem, Step, Value
from plansurvive.plans.model.parts import Part, Parted
from plansurvive.plans.model.shares import Fairness, Priority
from plansurvive.plans.notice import Notice
from plansurvive.plans.receipts import Receipts
from plansurvive.plans.step_state import (
    DENIED,
    DONE,
    NOBODY_ANSWERED,
    Change,
    Decision,
    Result,
    State,
    Status,
    StepState,
)
from plansurvive.plans.text.call_titles import retitled
from plansurvive.plans.usage import Ledger

__all__ = [
    "DENIED",
    "DONE",
    "ENDED",
    "LOG_ENTRIES",
    "NOBODY_ANSWERED",
    "Change",
    "Decision",
    "Options",
    "PlanStatus",
    "Result",
    "Run",
    "State",
    "Status",
    "StepState",
    "gc_disabled",
    "run_of",
    "text_of",
]

LOG_ENTRIES = 200
"""Maximum number of log entries of a run; the oldest is dropped first."""


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


class Options(Parted, Value):
    """Options of a client that starts a plan."""

    workspace: str | None = Field(default=None, description="Absolute directory; overrides the plan's own.")
    granted: list[Annotated[str, Field(max_length=4_096)]] | None = Field(
        default=None,
        max_length=20,
        description="Directories that the plan may work in, with those below them; none: `workspace`. The worker's"
        " settings may allow fewer.",
    )
    directories: dict[str, DirectoryIdentity] = Field(
        default_factory=dict,
        max_length=1_000,
        description="Which directories the workspaces are, as the earlier run or the parent knows them, by task queue.",
    )
    max_parallel: int | None = Field(default=None, ge=1, le=100, description="Overrides the plan's own.")
    priority: Priority | None = Field(default=None, description="Overrides the plan's own.")
    fairness: Fairness | None = Field(default=None, description="Overrides the plan's own.")
    timeout: float | None = Field(default=None, gt=0, le=31_536_000, description="Overrides the plan's own.")
    approve_all: bool = Field(default=False, description="`--yes`: no step awaits approval.")
    review: bool = Field(default=False, description="Wait for `begin` before the first step.")
    inputs: dict[str, Any] = Field(default_factory=dict, description="Values of the plan's inputs.")
    by: str = Field(default="", max_length=200, description="Who started it.")
    continued_by: str = Field(default="", max_length=200, description="Who resumes or reruns it, in this run.")
    vouched: bool | None = Field(
        default=None,
        description="A page's login vouches for who begins this run; counts only if the page's own key has signed it.",
    )
    waivers: bool = Field(default=True, description="False: no person read the plan, so what it waives does not count.")
    split: dict[str, Any] | None = Field(
        default=None,
        description="The request becomes one step of the tool `agent` per task; other arguments of those steps.",
    )
    history_limit: int | None = Field(
        default=None,
        ge=10,
        description="Events after which the workflow continues as new; none: when the server suggests it.",
    )
    owns: list[str] = Field(
        default_factory=list,
        description="Of a child plan: what its parent owns. A plan started by a person says it itself.",
    )


_NO_FAMILY = Family()


class Run(Parted, State):
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
    steps: dict[str, StepState] = Field(description="By id, those of blocks and loops included as they begin.")
    opened: dict[str, Opened] = Field(default_factory=dict, description="Blocks and loops that have begun.")
    overrides: dict[str, Step] = Field(default_factory=dict, description="Steps inside them, as edited there.")
    pins: dict[str, Step] = Field(
        default_factory=dict, description="Steps inside them that had begun when the plan was edited, as they were."
    )
    kept: Kept = Field(default_factory=Kept, description="Steps inside them that an earlier run has done.")
    decisions: dict[str, Decision] = Field(default_factory=dict)
    remembered: dict[str, str] = Field(default_factory=dict, description="Calls approved for the run, and by whom.")
    tools_changed: dict[str, str] = Field(
        default_factory=dict, description="Tools of servers that changed since the plan was checked, and how."
    )
    unwaived: dict[str, str] = Field(
        default_factory=dict, description="Steps that only a person lets start, and why; a feature says it."
    )
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
    notices: dict[str, Notice] = Field(default_factory=dict, description="What views say of it, by feature.")
    ends_by: dict[str, datetime] = Field(default_factory=dict, description="When features end it, unless it has ended.")
    failed_as: str = Field(default="", description="Code of its failure, if a feature has ended it.")
    held: bool = Field(default=False, description="Paused with the plan above, whose `unpause` ends that.")
    interrupted: bool = Field(default=False, description="Interrupted by a person; can be resumed.")
    denied: list[str] = Field(default_factory=list, description="Denied in the run before: they ask, waived or not.")
    closing: Closing | None = Field(default=None, description="How far rollback and `finally` are, once begun.")
    literal: bool = Field(default=False, description="Arguments contain no references: those of an agent's calls.")
    resumes: str = Field(default="", description="Id of the plan that this run resumes.")
    owns: list[str] = Field(default_factory=list, description="The plan's `owns` as it was started; no edit counts.")
    unsigned: bool = Field(default=False, description="Started without the signature that its worker asks for.")
    starter: str = Field(
        default="", description="Whose own key has signed its start: a person, `page:` and a page; `above:`: a child."
    )
    receipts: Receipts = Field(default_factory=Receipts, description="What became of the signals of this run.")
    value: Result | None = Field(default=None, description="Its value: `outputs`; of a child plan also without them.")
    moving: bool = Field(default=False, exclude=True, description="The host is lost; another is about to take over.")
    core_parts: ClassVar[tuple[type[Part], ...]] = (Family, Placed)
    _drawn: Drawn = PrivateAttr(default_factory=Drawn)
    _language: Language = PrivateAttr(default=PLAIN)
    _views: ViewSet = PrivateAttr(default_factory=lambda: NO_VIEWS)

    @classmethod
    def of(cls, plan: Plan, options: Options, facts: Facts, inputs: dict[str, Any]) -> Run:
        """A new run, with all steps pending."""
        return cls(
            plan=plan, options=options, facts=facts, inputs=inputs, steps={s.id: StepState() for s in plan.steps}
        )

    @property
    def language(self) -> Language:
        """The language of plans with what features add: in a workflow those that the run asks, else all there are."""
        language: Language = (self.__pydantic_private__ or {})["_language"]  # found by name, it would cost four calls
        return language

    @language.setter
    def language(self, language: Language) -> None:
        self._language = language

    @property
    def views(self) -> ViewSet:
        """What features add to its views; whoever reads a run to draw them itself sets it (`run_of`)."""
        views: ViewSet = (self.__pydantic_private__ or {})["_views"]  # as above: each row of a text asks
        return views

    @views.setter
    def views(self, views: ViewSet) -> None:
        self._views = views

    @property
    def parent(self) -> ParentLink | None:
        """The plan that it runs for, as a step of it."""
        return self._family.parent

    @parent.setter
    def parent(self, parent: ParentLink | None) -> None:
        self.keep(self._family.model_copy(update={"parent": parent}))

    @property
    def batch(self) -> Batch | None:
        """The part of its parent's loop that it runs."""
        return self._family.batch

    @batch.setter
    def batch(self, batch: Batch | None) -> None:
        self.keep(self._family.model_copy(update={"batch": batch}))

    @property
    def agents(self) -> dict[str, dict[str, Any]]:
        """By step, the run of its child that the step resumes; to be set as a whole."""
        return self._family.agents

    @agents.setter
    def agents(self, agents: dict[str, dict[str, Any]]) -> None:
        self.keep(self._family.model_copy(update={"agents": agents}))

    def forget_child(self, step_id: str) -> None:
        """The child that a step was to resume has been resumed, and needs no record here."""
        if step_id in self.agents:
            self.agents = {name: each for name, each in self.agents.items() if name != step_id}

    @property
    def _family(self) -> Family:
        return self.known_part(Family) or _NO_FAMILY

    @property
    def host(self) -> Host | None:
        """Where its files are, if workers have a workspace each."""
        placed = self.known_part(Placed)
        return None if placed is None else placed.host

    @host.setter
    def host(self, host: Host | None) -> None:
        self.keep(Placed(host=host))

    @property
    def outline(self) -> Outline:
        """The steps of the plan, and of its blocks and loops as far as they have begun."""
        kept: Drawn = (self.__pydantic_private__ or {})["_drawn"]
        drawn = kept.outline
        if drawn is None or drawn.plan is not self.plan or drawn.opened is not self.opened:
            drawn = kept.outline = Outline(self.plan, self.opened, own_steps(self), self.closing)
        return drawn

    def redraw(self) -> Outline:
        """The outline, built again."""
        self._drawn.outline = None
        return self.outline

    def step_of(self, step_id: str) -> Step | None:
        """The step with that id, also inside a block or loop that has begun; None if there is none."""
        node = self.outline.nodes.get(step_id)
        return None if node is None else node.step

    @property
    def paused(self) -> bool:
        """Whether no step may start for now."""
        return self.status is PlanStatus.PAUSED

    def next_seq(self) -> int:
        """The next sequence number, for a change or a log entry."""
        self.seq += 1
        return self.seq

    @property
    def time_limit(self) -> float | None:
        """The seconds that it may take, as who started it said or else the plan; None: any time."""
        given = self.options.timeout
        return self.plan.timeout if given is None else given

    @property
    def must_end(self) -> datetime | None:
        """When it must have ended; None if never, and once it is being closed."""
        is_open = self.status not in ENDED and self.closing is None
        return min(self.ends_by.values(), default=None) if is_open else None

    @property
    def is_held_up(self) -> bool:
        """Whether something keeps all of its steps from starting; none has."""
        return any(notice.holds for notice in self.notices.values())

    @property
    def was_cut_short(self) -> bool:
        """Whether it was interrupted before all steps were done; a later interruption had no effect."""
        return self.interrupted and not all(
            state.status in (Status.COMPLETED, Status.SKIPPED) for state in self.steps.values() if not state.closes
        )

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
        if kind is LogKind.VOID:
            self.receipts.void(step_id, code or "VOID", text)

    def queue_of(self, step: Step) -> str | None:
        """The task queue the step is bound to; None: the workflow's own."""
        return step.queue or self.plan.queue

    @property
    def home_queue(self) -> str | None:
        """The task queue of the workers that have the plan's files; None: the workflow's own."""
        return self.host.queue if self.host else self.plan.queue

    def host_of(self, step: Step) -> Host | None:
        """The host whose workers call the step's tool; None: any worker of its queue does."""
        return self.host if self.queue_of(step) == self.plan.queue else None

    @property
    def is_guest(self) -> bool:
        """Whether its place at a host is that of the plan above, which alone moves it."""
        return self.host is not None and self.host.guest

    def workspace_of(self, step: Step) -> str:
        """The directory the step works in, on the workers of its queue."""
        return self.facts.workspaces.get(step.queue or "", self.facts.workspace)

    def directory_of(self, step: Step) -> DirectoryIdentity | None:
        """Which directory the step's workspace is; None where no worker has said so."""
        if self.host is not None and self.workspace_of(step) == self.host.workspace:
            return self.host.directory
        queue = step.queue or ""
        return self.facts.directories.get(queue if queue in self.facts.workspaces else "")

    def args_of(self, step: Step) -> dict[str, Any]:
        """The step's arguments, as changed by the approver if they were."""
        changed = self.steps[step.id].args
        return step.args if changed is None else changed

    def description_of(self, step: Step) -> str:
        """The step's description; that of an agent's call names its arguments as the approver changed them."""
        changed = self.steps[step.id].args if self.literal else None
        return step.description if changed is None else retitled(step.description, step.tool, step.args, changed)


def as_it_stands(run: Run) -> Plan:
    """The present plan, with the arguments that approvers changed."""
    steps = [step.model_copy(update={"args": run.args_of(step)}) for step in run.plan.steps]
    return run.plan.model_copy(update={"steps": steps})


def own_steps(run: Run) -> dict[str, Step]:
    """The steps inside blocks and loops that are not as the plan has them, by id."""
    return {**run.pins, **run.overrides} if run.pins else run.overrides


def text_of(run: Run) -> str:
    """The Run as JSON, defaults omitted: the input of continue-as-new, and the record of an ended plan."""
    return run.model_dump_json(exclude_defaults=True)


def run_of(state: Any, language: Language = PLAIN, views: ViewSet = NO_VIEWS) -> Run:
    """Parse a Run from its JSON text or data, with what features add. Raises pydantic's ValidationError."""
    with gc_disabled():
        is_text = isinstance(state, str | bytes)
        run = Run.model_validate_json(state) if is_text else Run.model_validate(state)
    run.language, run.views = language, views
    return run


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
