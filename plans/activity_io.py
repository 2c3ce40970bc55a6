"""Input and output types of the activities.

A step's tool is an activity that takes a `Call` and returns a `Return`; it fails with an ApplicationError whose type is
a stable error code. `check_plan` takes a `CheckRequest` and returns `Facts`: the only way a workflow learns about the
worker it runs on. `record_end` takes a Run's JSON text and returns an `EndRecord`; `write_summary` takes a
`SummaryFile`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from plans.file_stamps import NOTES_BYTES, Stamp
from plans.model import Plan, Problem, Retry, ToolSpec, Value

MAX_VALUE_BYTES = 64 * 1024 * 1024
"""Maximum length of a value's JSON text, in bytes."""
PREVIEW_CHARACTERS = 200
"""Length of the preview of a long value in a view (seed 000)."""


class LargeValue(Value):
    """A reference to a value in external storage, content-addressed by the hash of its JSON text (UTF-8)."""

    sha256: str = Field(description="Hex digest of the JSON text.")
    claim: dict[str, str] = Field(
        default_factory=dict, description="The storage driver's claim: what it needs to retrieve the value."
    )
    bytes: int = Field(description="Length of the JSON text, in bytes.")
    preview: str = Field(description="The first 200 characters of the value, for people.")


class Call(Value):
    """One tool call of a step: the input of a tool's activity."""

    args: dict[str, Any] = Field(description="Arguments, references filled in except those listed in `deferred`.")
    plan_id: str
    step_id: str
    key: str = Field(description="Idempotency key: the same for all attempts of this call, unique to it.")
    workspace: str = Field(description="Absolute directory the tool works in.")
    timeout: float = Field(description="Seconds this attempt may take.")
    retry: Retry = Field(description="Retry policy. Only tool errors count as attempts, not crashes of the worker.")
    approved: bool = Field(default=False, description="Approved by a person or by a waiver.")
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
    quoting: dict[str, Literal["shell", "python"]] = Field(
        default_factory=dict, description="Arguments that are code, with the language to quote inserted values for."
    )


class PastCall(Value):
    """A tool call without a value (it failed, or it reported that it needs approval), or any call of a step's agent."""

    tool: str
    args: dict[str, Any] = Field(description="As passed to the tool, long texts truncated.")
    result: str = Field(description="The error, truncated; of an agent's call, the value or the error.")
    time: datetime = Field(description="When it started.")
    sandbox: str = Field(default="", description="Sandbox level of its commands.")
    asked: dict[str, Any] | None = Field(
        default=None, description="What an agent's model asked for, truncated alike, if a person replaced it."
    )
    by: str = Field(default="", description="Who replaced it.")


class Note(Value):
    """The agents.md text of one directory, in `text` or in `large`."""

    path: str = Field(description="The agents.md, relative to the workspace.")
    bytes: int = Field(description="Length of the text retained, in bytes of UTF-8.")
    text: str | None = None
    large: LargeValue | None = None
    cut: bool = Field(default=False, description="Truncated: the file exceeds what is left for the session.")
    step_id: str = Field(default="", description="The step whose read brought it in.")


class Return(Value):
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
    more_files: int = Field(default=0, description="Number of further changed files that are not listed.")
    sandbox: str = Field(default="", description="Sandbox of the commands it ran: bwrap, landlock, none.")
    notes: list[Note] = Field(
        default_factory=list, description="agents.md that apply to the files read, parents first."
    )
    warnings: list[str] = Field(default_factory=list, description="Warnings for people.")


class CheckRequest(Value):
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
    inputs: dict[str, Any] = Field(default_factory=dict)
    all_tools: bool = Field(
        default=False, description="Return all tools, for a plan that may be edited or is yet to be drafted."
    )


class Facts(Value):
    """Output of `check_plan`: what the workflow needs to know about the worker, recorded once in history."""

    problems: list[Problem] = Field(default_factory=list)
    tools: dict[str, ToolSpec] = Field(
        default_factory=dict, description="Specs of the tools this plan uses, or of all."
    )
    all_tools: bool = Field(default=False, description="Whether `tools` holds all of the worker's tools.")
    decision_key: str = Field(
        default="", description="Public key that must have signed starts and decisions; empty: they need no signature."
    )
    workspace: str = Field(default="", description="Absolute directory of steps without a task queue of their own.")
    workspaces: dict[str, str] = Field(default_factory=dict, description="Workspace by task queue.")
    strict_approvals: bool = Field(default=False, description="PLANS_APPROVALS=strict: waivers are ignored.")
    binds_calls: bool = Field(
        default=False, description="Decisions are bound to the digest of a call; not in histories of older versions."
    )
    versions_by_step: bool = Field(
        default=False,
        description="An approver's change of a step leaves decisions on other steps valid; not in older histories.",
    )
    search_attributes: bool = Field(
        default=False, description="Our custom search attributes are registered on the server."
    )
    keeps_summaries: bool = Field(default=False, description="The worker writes SUMMARY.md files.")


class SummaryFile(Value):
    """Input of `write_summary`: the summary of a finished run as Markdown."""

    plan_id: str
    markdown: str


END_RECORD = "endRecord"
"""Key in the workflow's memo for the reference to the plan's EndRecord."""


class EndRecord(Value):
    """Output of `record_end`: what remains of a finished run; recorded in history."""

    summary: dict[str, Any]
    text: str = Field(description="The plan as text; abridged to the most recent steps if it is big.")
    run: LargeValue | str = Field(description="The Run as JSON text, or a reference to it in external storage.")
    claim: LargeValue | None = Field(
        default=None, description="Reference to this record in storage, upserted into the workflow's memo."
    )
