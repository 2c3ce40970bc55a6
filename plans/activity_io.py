"""Input and output types of the activities.

A step's tool is an activity that takes a `Call` and returns a `Return`; it fails with an ApplicationError whose type is
a stable error code. `check_plan` takes a `CheckRequest` and returns `Facts`: the only way a workflow learns about the
worker it runs on. `record_end` takes a Run's JSON text, and its PlanEnd where `plans.views.ended` says so.
"""

from __future__ import annotations

import operator
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from pydantic import AwareDatetime, Field, ValidationError

from plansurvive.plans.directory import DirectoryIdentity
from plansurvive.plans.file_stamps import NOTES_BYTES, Stamp
from plansurvive.plans.large_value import Composed, LargeValue
from plansurvive.plans.model import Plan, Problem, Retry, ToolSpec, Value
from plansurvive.plans.model.parts import Parted
from plansurvive.plans.receipts import Receipts

MAX_VALUE_BYTES = 64 * 1024 * 1024
"""Maximum length of a value's JSON text, in bytes."""
MAX_DURATION = 1e11
"""Milliseconds, three years: no attempt lasts longer."""
WORKER_LOST = "WORKER_LOST"
"""Code of an attempt that ended with its worker."""
PREVIEW_CHARACTERS = 200
"""Length of the preview of a long value in a view (seed 000)."""


STDOUT: Final = 1  # the number of a stream, in `Turns` and elsewhere
STDERR: Final = 2
Turns = list[tuple[Literal[1, 2], int]]
"""The order in which output arrived: bytes of one stream, then of the other."""


class Logs(Value):
    """What a tool's commands wrote in one attempt: chunks in external storage, and the end that is not stored there.

    Grows while the attempt runs; each one is complete in itself. `activities.outputs` writes it,
    `features.outputs` reads it.
    """

    index: dict[str, str] = Field(
        default_factory=dict, description="The storage driver's claim of the last LogIndex; empty: nothing is stored."
    )
    stdout: int = Field(default=0, description="Bytes of standard output so far.")
    stderr: int = Field(default=0, description="Bytes of standard error so far.")
    end: list[tuple[Literal[1, 2], str]] = Field(
        default_factory=list, description="What follows the stored chunks, in order: stream, and its bytes in base64."
    )
    of_value: Turns | None = Field(default=None, description="Order of the texts, if the step's value has them alone.")
    began: AwareDatetime | None = Field(default=None, description="When the attempt began, UTC.")
    cut: bool = Field(default=False, description="There was more output, which is lost: the limit, or the storage.")


def logs_of(found: Any) -> Logs | None:
    """The Logs in a heartbeat's details, which another version of the worker may have written; None if unreadable."""
    try:
        return Logs.model_validate(found) if found else None
    except ValidationError:
        return None


def time_of(found: Any) -> datetime | None:
    """The time in a heartbeat's details, with a zone; None if there is none or it is unreadable."""
    try:
        time = datetime.fromisoformat(found) if isinstance(found, str) else None
    except ValueError:
        return None
    return time if time and time.tzinfo else None


class LogPart(Value):
    """What was stored together of an attempt's output."""

    turns: Turns
    chunks: list[tuple[Literal[1, 2], dict[str, str]]] = Field(description="Stream, and the claim of its bytes.")


class LogIndex(Value):
    """A list of parts, with a reference to the index of those before it."""

    earlier: dict[str, str] = Field(default_factory=dict, description="The driver's claim; empty: this is the first.")
    stdout: int = Field(default=0, description="Bytes of standard output before the first part.")
    stderr: int = Field(default=0, description="Bytes of standard error before the first part.")
    parts: list[LogPart] = Field(default_factory=list)


class Attempt(Value):
    """One attempt of a call: its tool failed, or its worker was lost. Of an earlier run, also one that gave a value."""

    number: int = Field(
        ge=1, description="From 1. Only the tool's errors count: the attempt after a lost one has the same."
    )
    began: AwareDatetime = Field(
        description="When it began, UTC. Of one that was lost before its first heartbeat: when its call was scheduled."
    )
    duration: float = Field(
        default=0.0, ge=0, le=MAX_DURATION, description="Milliseconds; of a lost one, until its last heartbeat."
    )
    code: str | None = Field(default=None, description="Code of the error; WORKER_LOST if it was lost with its worker.")
    error: str = Field(default="", description="The error, truncated.")
    delay: float | None = Field(default=None, description="Seconds to the next attempt; none: the last, or a lost one.")
    logs: Logs | None = Field(default=None, description="What its commands wrote.")

    @property
    def ended(self) -> datetime:
        """When it ended, or was last heard of."""
        try:
            return self.began + timedelta(milliseconds=self.duration)
        except OverflowError:  # in the year 9999, which a hand-made record may say
            return self.began


class Call(Parted, Value):
    """One tool call of a step: the input of a tool's activity."""

    args: dict[str, Any] = Field(description="Arguments, references filled in except those listed in `deferred`.")
    plan_id: str
    step_id: str
    key: str = Field(description="Idempotency key: the same for all attempts of this call, unique to it.")
    workspace: str = Field(description="Absolute directory the tool works in.")
    directory: DirectoryIdentity | None = Field(
        default=None, description="Which directory that is; another one under its path is refused (WORKSPACE_MOVED)."
    )
    timeout: float = Field(description="Seconds this attempt may take.")
    retry: Retry = Field(description="Retry policy. Only tool errors count as attempts, not crashes of the worker.")
    approved: bool = Field(default=False, description="Approved by a person or by a waiver.")
    strict: bool = Field(default=False, description="PLANS_APPROVALS=strict: new names that may be read by others ask.")
    repeatable: bool = Field(default=True, description="False: at most one attempt, even if the worker crashes.")
    stamps: dict[str, Stamp] = Field(
        default_factory=dict, description="Stamps of the call's files, as this run last saw them."
    )
    notes_seen: list[str] = Field(default_factory=list, description="agents.md that were shown before.")
    notes_left: int = Field(default=NOTES_BYTES, description="Bytes of agents.md text left for this session.")
    deferred: list[list[str | int]] = Field(
        default_factory=list, description="Locations in `args` whose references the activity fills in."
    )
    values: dict[str, Any] = Field(default_factory=dict, description="Inline values for the deferred references.")
    large: dict[str, LargeValue] = Field(default_factory=dict, description="Large values for the deferred references.")
    composed: dict[str, Composed] = Field(default_factory=dict, description="Values of blocks that hold some.")
    quoting: dict[str, Literal["shell", "python", "jmespath"]] = Field(
        default_factory=dict, description="Arguments that are code, with the language to quote inserted values for."
    )
    owns: list[str] = Field(default_factory=list, description="Patterns of files that it may replace unasked.")
    drafted: bool = Field(
        default=False,
        description="An LLM wrote the plan: that it has read a file does not let it replace that unasked.",
    )
    definition: str = Field(default="", description="Of a server's tool: the definition that the call was decided on.")
    earlier: list[Attempt] = Field(
        default_factory=list, description="Its failed attempts that were made in another activity, oldest first."
    )

    def may_replace(self, path: str) -> bool:
        """Whether it may overwrite an existing file unasked, as far as that follows from what the run knows of it."""
        seen = self.stamps.get(path)
        return seen is not None and seen.state != "deleted" and (seen.made or not self.drafted)


JUDGE_CALL = "judge_call"
"""The activity of a feature that judges a step which no activity of its tool runs: a plan or an agent."""


class CallToJudge(Value):
    """Input of `judge_call`, which answers with a Return that has parts alone."""

    tool: str
    call: Call


class PastCall(Value):
    """An attempt without a value (failed, lost, needs approval), or any call of a step's agent or of an earlier run."""

    tool: str
    args: dict[str, Any] = Field(description="As passed to the tool, long texts truncated.")
    result: str = Field(description="The error or the value, truncated.")
    time: datetime = Field(description="When it started.")
    sandbox: str = Field(default="", description="Sandbox level of its commands.")
    asked: dict[str, Any] | None = Field(
        default=None, description="The arguments asked for, truncated alike, if a person replaced them."
    )
    by: str = Field(default="", description="Who replaced them.")
    attempt: Attempt | None = Field(default=None, description="The attempt as its worker reported it, if it did.")
    call: int = Field(default=0, description="Number of the step's call, from 1; 0: not known, or of an agent.")
    retried: bool = Field(default=False, description="Another attempt of the same call followed.")
    run: str = Field(default="", description="Id of the earlier plan that made the call, if this plan resumes it.")
    agent: str = Field(default="", description="Id of the agent that made it, if one did.")
    number: int = Field(default=0, description="Its number among the calls of that agent.")


class Note(Value):
    """The agents.md text of one directory, in `text` or in `large`."""

    path: str = Field(description="The agents.md, relative to the workspace.")
    bytes: int = Field(description="Length of the text retained, in bytes of UTF-8.")
    text: str | None = None
    large: LargeValue | None = None
    cut: bool = Field(default=False, description="Truncated: the file exceeds what is left for the session.")
    step_id: str = Field(default="", description="The step whose read brought it in.")


class Return(Parted, Value):
    """Output of a tool's activity. Exactly one of `value` and `large` holds the value."""

    value: Any = None
    large: LargeValue | None = None
    duration: float = Field(description="Duration of the successful attempt, in milliseconds.")
    attempt: int = Field(default=1, description="Number of the successful attempt; only tool errors count.")
    read: dict[str, Stamp] = Field(default_factory=dict, description="Files read, relative to the workspace.")
    wrote: dict[str, Stamp | None] = Field(
        default_factory=dict, description="Files and directories (null) written, relative to the workspace."
    )
    deleted: list[str] = Field(default_factory=list, description="Files deleted, relative to the workspace.")
    shared: list[str] = Field(
        default_factory=list, description="Those of `wrote` and `deleted` that a concurrent step may have changed."
    )
    shared_with: list[str] = Field(default_factory=list, description="The steps that may have changed those instead.")
    missing: list[str] = Field(default_factory=list, description="Files that the run knew, and that it found deleted.")
    more_files: int = Field(default=0, description="Number of further changed files that are not listed.")
    sandbox: str = Field(default="", description="Sandbox of the commands it ran: bwrap, landlock, none.")
    notes: list[Note] = Field(default_factory=list, description="agents.md of the files read, parents first.")
    warnings: list[str] = Field(default_factory=list, description="Warnings for people.")
    logs: Logs | None = Field(default=None, description="What the commands of the successful attempt wrote.")
    attempts: list[Attempt] = Field(
        default_factory=list, description="The attempts before, oldest first; the last 20 of them."
    )
    more_attempts: int = Field(default=0, ge=0, description="Number of attempts before those.")
    taken_from: str | None = Field(
        default=None, max_length=400, description="PLAN/STEP whose result it is: the tool was not called."
    )


class CheckRequest(Parted, Value):
    """Input of `check_plan`: a plan for the worker to validate before it runs there."""

    plan: Plan | None = Field(default=None, description="A well-formed plan to validate; None only asks for the tools.")
    queue: str | None = Field(
        default=None, description="The task queue asked; its worker validates the steps bound to it."
    )
    workspace: str | None = Field(
        default=None, description="Workspace chosen by the client; takes precedence over the plan's."
    )
    granted: list[str] | None = Field(
        default=None,
        description="Directories that the client grants as workspaces, with what is below them; none: `workspace`.",
    )
    directory: DirectoryIdentity | None = Field(
        default=None, description="The workspace as an earlier run or the parent knows it; none: whatever is there."
    )
    inputs: dict[str, Any] = Field(default_factory=dict)
    all_tools: bool = Field(
        default=False, description="Return all tools, for a plan that may be edited or is yet to be drafted."
    )


class Facts(Parted, Value):
    """Output of `check_plan`: what the workflow needs to know about the worker, recorded once in history."""

    problems: list[Problem] = Field(default_factory=list)
    features: list[str] = Field(
        default_factory=list, description="Those of the worker; the run asks them and no others for its whole life."
    )
    tools: dict[str, ToolSpec] = Field(
        default_factory=dict, description="Specs of the tools this plan uses, or of all."
    )
    all_tools: bool = Field(default=False, description="Whether `tools` holds all of the worker's tools.")
    must_sign: bool = Field(
        default=False, description="PLANS_DECISIONS=signed: starts and decisions count only if a feature verifies them."
    )
    workspace: str = Field(default="", description="Absolute directory of steps without a task queue of their own.")
    workspaces: dict[str, str] = Field(default_factory=dict, description="Workspace by task queue.")
    directories: dict[str, DirectoryIdentity] = Field(
        default_factory=dict, description="Which directories the workspaces are, by task queue; by '' that of the plan."
    )
    queue_tools: dict[str, list[str]] = Field(
        default_factory=dict, description="By task queue, the names of all tools of its workers, once a recovery asked."
    )
    strict_approvals: bool = Field(default=False, description="PLANS_APPROVALS=strict: waivers are ignored.")
    search_attributes: bool = Field(
        default=False, description="Our custom search attributes are registered on the server."
    )
    keeps_summaries: bool = Field(default=False, description="The worker writes SUMMARY.md files.")
    places: bool = Field(
        default=False,
        exclude_if=operator.not_,
        description="An item that has awaited somebody waits for a place in its loop again. Not so in plans that a"
        " worker of 1.0.0 checked. Left out of plans without such loops, which workers of 1.0.0 may run as well.",
    )
    own_files: bool = Field(default=False, description="Its workers have a workspace each; a plan stays with a host.")


class AgentEvent(Value):
    """Argument of track_agent: one event for the history of agents; the workflow supplies the time."""

    kind: Literal["spawned", "completed", "failed", "timeout", "interrupted", "resumed"]
    agent_id: str = Field(min_length=1, max_length=200, description="Id of the run; for `resumed`, of the new run.")
    time: datetime = Field(description="When it happened; the same for all attempts to record it.")
    agent_type: str = Field(default="general-purpose", description="For `spawned`.")
    plan: str | None = Field(default=None, description="For `spawned`.")
    task_group: str = Field(default="", description="For `spawned`: its task.")
    resumes: str = Field(default="", description="For `resumed`: id of the old run.")


class SummaryFile(Value):
    """Input of `write_summary`: the summary of a finished run as Markdown."""

    plan_id: str
    markdown: str


STAYS = "plans/stays"
"""In the metadata of a payload that never leaves the worker, so that no storage keeps it (`runtime.storage`)."""
END_RECORD = "endRecord"
"""Key in the workflow's memo for the reference to the plan's EndRecord."""


class EndRecord(Value):
    """Output of `record_end`: what remains of a finished run; recorded in history."""

    summary: dict[str, Any]
    text: str = Field(description="The plan as text; abridged to the most recent steps if it is big.")
    receipts: Receipts | None = Field(default=None, description="What became of signals.")
    run: LargeValue | str = Field(description="The Run as JSON text, or a reference to it in external storage.")
    claim: LargeValue | None = Field(
        default=None, description="Reference to this record in storage, upserted into the workflow's memo."
    )


class PlanEnd(Value):
    """A finished run, summarised."""

    record: EndRecord = Field(description="Without the Run: `run` is empty.")
    file: SummaryFile
