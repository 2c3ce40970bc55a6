"""The state of one step of a run: its status, result, decision and record.

Only `plans.execution.schedule` sets a status; `plans.execution.approvals` records decisions.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from plansurvive.plans.activity_io import Logs, PastCall
from plansurvive.plans.child_state import AtWork, ChildPlan
from plansurvive.plans.large_value import LargeValue
from plansurvive.plans.model import Value
from plansurvive.plans.model.parts import Part, Parted

DENIED = "DENIED"
"""Code of a step that a person denied."""
NOBODY_ANSWERED = "NOBODY_ANSWERED"
"""Code of a step whose approval expired with `onTimeout: deny`: skipped as a denied one, and counted apart."""
DENIALS: Mapping[str, str] = MappingProxyType({DENIED: "denied", NOBODY_ANSWERED: "unanswered"})
"""By code, what views call a step that is skipped as it was not allowed to run: counts, marks and lists follow from
this table. Of their order, too."""
ITEMS_DENIED = "ITEMS_DENIED"
"""Code of a loop of which people denied more items than `tolerate` allows."""
SKIPPED = "SKIPPED"
"""Code of a step skipped by a person or by recovery."""


class Status(StrEnum):
    """Status of a step; no other value is ever shown (seed 004)."""

    PENDING = "pending"
    BLOCKED = "blocked"
    READY = "ready"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    SKIPPED = "skipped"


DONE = frozenset({Status.COMPLETED, Status.FAILED, Status.SKIPPED})
DONE_WORDS = (Status.COMPLETED.value, Status.FAILED.value, Status.SKIPPED.value, *DENIALS.values())
"""What views call steps that are done."""


class State(BaseModel):
    """Base class of mutable values. Only the workflow that owns the run changes them."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, populate_by_name=True, serialize_by_alias=True)

    if not TYPE_CHECKING:  # mypy would take any name for a field

        def __setattr__(self, name: str, value: Any) -> None:
            # A field that has a value: pydantic would do no more, in four calls. A step sets a dozen.
            if name in self.__dict__:
                self.__dict__[name] = value
            else:
                super().__setattr__(name, value)


class Result(Parted, Value):
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
    taken_from: str | None = Field(default=None, description="PLAN/STEP whose result it is: the tool was not called.")
    composed: bool = Field(default=False, description="The value is assembled from the values of the steps inside.")


class Outcome(NamedTuple):
    """The final status and result of a step. `opens`: dependents that do not use its value may run."""

    status: Status
    result: Result
    opens: bool = True


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
    digest: str = Field(
        default="", description="The call it covers (`plans.run.step_call`); empty: values were unknown."
    )
    undo: str = Field(default="", description="The call of the step's undo that it covers as well; empty: none.")
    unchecked: bool = Field(default=False, description="Made before the check: the workspace was not known yet.")
    remembered: bool = Field(default=False, description="Follows from an approval of another step, with `remember`.")
    time: datetime
    source: Literal["signal", "update", "timeout"] = "signal"
    via: str = Field(default="", description="Where the person decided: web, link, mcp; empty: by command or program.")
    verified: bool = Field(
        default=False, description="A login or the person's own key has verified the name; only of signed decisions."
    )
    signed: str = Field(default="", description="Whose own key has signed it: a person, `page:` and a page.")
    needed: int = Field(default=1, description="How many people must approve the call.")
    missing: int = Field(default=0, description="How many more of them must; until then the step awaits them.")
    override: bool = Field(default=False, description="Made alone, in place of all who must approve.")

    @property
    def who(self) -> str:
        """The name, with what is known of how it came in: `ann@example.org (web, verified)`. Empty without one."""
        return named(self.by, self.via, verified=self.verified)

    def unsigned(self) -> Decision:
        """The same, signed by nobody's own key."""
        return self.model_copy(update={"signed": ""}) if self.signed else self

    @property
    def changed_args(self) -> bool:
        """Whether the approver replaced the arguments."""
        return self.args is not None


class Approved(Value):
    """An approval that counts."""

    by: str
    time: datetime


class Consent(Value):
    """How far the approvals of a call are that a rule of an operator asks for."""

    rule: str
    by: list[str] = Field(default_factory=list, description="The people who may approve; empty: everybody.")
    count: int = Field(default=1, description="How many people must.")
    override: list[str] = Field(default_factory=list, description="The people who may approve alone, with a reason.")
    decided: list[Approved] = Field(default_factory=list, description="Those who have.")
    missing: int = Field(default=0, description="How many more must.")
    expires: datetime | None = Field(default=None, description="When the first of them counts no more.")
    people: dict[str, str] = Field(
        default_factory=dict,
        description="By the name and each login of the first 100 it is about: empty if they may approve, else why not.",
    )
    logins: dict[str, list[str]] = Field(
        default_factory=dict, description="By person in `decided` and `override`, their logins at pages."
    )
    text: str = Field(default="", description="All that in a sentence.")


def named(by: str, via: str, *, verified: bool) -> str:
    """A person's name, with where they decided and whether the name is verified."""
    how = ", ".join(filter(None, (via, "verified" if verified else "")))
    return f"{by} ({how})" if by and how else by


class Answered(Value):
    """Who answered a question, and when."""

    by: str = ""
    time: datetime
    source: Literal["signal", "update", "timeout"] = Field(
        default="signal", description="timeout: its time limit passed, and the default was taken."
    )
    via: str = Field(default="", description="Where it was sent: web, link or mcp; empty: a command or a program.")
    verified: bool = Field(default=False, description="A login has verified the name; only of signed messages.")

    @property
    def who(self) -> str:
        """The name, with what is known of how it came in; empty without one."""
        return named(self.by, self.via, verified=self.verified)


class Answer(Answered):
    """The value that a person gave for a step. Once it has completed, its result holds the value, and this does not."""

    value: Any = None
    used: bool = Field(default=False, description="The step has completed with it.")
    digest: str = Field(default="", description="Of the question it is about; empty: it was not known as a whole.")

    def view(self) -> dict[str, Any]:
        """Who answered and when, as JSON data: what is known of how the name came in only if there is something."""
        known = {name for name in ("via", "verified") if getattr(self, name)}
        return self.model_dump(mode="json", include={"by", "time", "source"} | known)


class Spoke(Protocol):
    """A decision or an answer, in a run or in a view."""

    @property
    def source(self) -> str:
        """How it came in: a message, or `timeout`."""
        ...

    @property
    def who(self) -> str:
        """The name, with what is known of how it came in; empty without one."""
        ...


def by_name(spoke: Spoke) -> str:
    """Who decided or answered: `by ann (web)`, or `by its time limit`; empty without a name."""
    if spoke.source == "timeout":
        return "by its time limit"
    return f"by {spoke.who}" if spoke.who else ""


def by_whom(decided: Decision | Answered) -> str:
    """Who decided or answered and when, as a sentence goes on: ` by ann on 2027-03-28 at 07:00 UTC`."""
    who = by_name(decided)
    return f"{f' {who}' if who else ''} on {decided.time.astimezone(UTC):%Y-%m-%d at %H:%M} UTC"


ASKING: Mapping[str | None, bool] = {"approval": False, "answer": True}
"""What of a step's `awaiting` is pending for a person; whether that is a value of theirs."""


class StepState(Parted, State):
    """The state of one step."""

    status: Status = Status.PENDING
    awaiting: Literal["approval", "answer", "event", "recovery"] | None = None
    queued: bool = Field(default=False, description="Ready, and waits for a place in a loop with `maxParallel`.")
    permanently_blocked: bool = Field(
        default=False, alias="never", description="It can never start; of a skipped step: its dependents cannot."
    )
    reason: str = Field(default="", description="Why it is permanently blocked, or was skipped.")
    result: Result | None = None
    args: dict[str, Any] | None = Field(default=None, description="The approver's arguments, which replace the plan's.")
    changes: list[Change] = Field(default_factory=list)
    calls: int = Field(default=0, description="Activities started for it.")
    deadline: datetime | None = Field(default=None, description="When the approval expires or the sleep ends.")
    asked: dict[str, Any] | None = Field(default=None, description="The arguments shown to the approver.")
    asks: dict[int, str] = Field(default_factory=dict, description="Digests shown to approvers, by number of change.")
    asked_undo: str = Field(default="", description="Digest of the undo that was shown with that call; empty: none.")
    showed: dict[int, dict[str, Any]] = Field(default_factory=dict, description="Arguments shown before `asked`, cut.")
    waits: dict[int, Literal["answer", "event"]] = Field(
        default_factory=dict, description="Numbers of the changes with which it began to wait for these."
    )
    answer: Answer | None = Field(default=None, description="The answer to its question, which may come before it.")
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
    notes: str = Field(default="", description="What its agent wrote about its work: summaries of tasks, its answer.")
    closes: Literal["", "undo", "finally"] = Field(default="", description="It closes the plan (`flow.closing`).")

    core_parts: ClassVar[tuple[type[Part], ...]] = (AtWork,)

    @property
    def child(self) -> ChildPlan | None:
        """The plan that it runs, of a step with the tool `plan`."""
        work = self.known_part(AtWork)
        return None if work is None else work.child

    @child.setter
    def child(self, child: ChildPlan | None) -> None:
        self.keep((self.known_part(AtWork) or AtWork()).model_copy(update={"child": child}))

    @property
    def wants_answer(self) -> bool:
        """Whether it asks a question now."""
        return ASKING.get(self.awaiting, False)

    @property
    def digest(self) -> str:
        """The digest of what an approver was last shown; empty if none was."""
        return next(reversed(self.asks.values()), "")

    @property
    def denial(self) -> str:
        """Its word in DENIALS; empty if it was not denied."""
        if self.status is not Status.SKIPPED or self.result is None:
            return ""
        return DENIALS.get(self.result.code or "", "")

    @property
    def is_denied(self) -> bool:
        """Whether a person, or the time limit of its approval, denied it."""
        return bool(self.denial)

    @property
    def is_unanswered(self) -> bool:
        """Whether no decision came in time, so that it counts as denied."""
        return self.denial == DENIALS[NOBODY_ANSWERED]

    @property
    def counts_as_denied(self) -> bool:
        """Whether its loop counts it as denied: a person denied it, or too many items of a loop inside it."""
        return self.is_denied or (self.result is not None and self.result.code == ITEMS_DENIED)

    @property
    def began(self) -> datetime | None:
        """When it was last started."""
        return next((change.time for change in reversed(self.changes) if change.status is Status.RUNNING), None)

    @property
    def ended(self) -> datetime | None:
        """When it last completed, failed or was skipped."""
        for change in reversed(self.changes):
            if change.status in DONE:
                return change.time
        return None
