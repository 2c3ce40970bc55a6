"""What crosses the border between the workflow and the activities: one typed value each way per activity.

A step's tool is an activity that takes a `Call` and returns a `Return`; its failure is an application error whose
type is one of the stable codes. `check_plan` takes a `CheckRequest` and returns `Facts`: the only way a workflow
learns about the worker it runs on. `record_end` takes a Run's JSON text and returns an `EndRecord`; `write_summary`
takes a `SummaryFile`.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from plans.file_stamps import NOTES_BYTES, Stamp
from plans.model import Plan, Problem, Retry, ToolSpec, Value

PREVIEW_CHARACTERS = 200
"""Characters kept of a long value in a view (seed 000)."""


class LargeValue(Value):
    """A value kept outside history, named by the hash of its JSON text (UTF-8)."""

    sha256: str = Field(description="Hex digest of the JSON text.")
    claim: dict[str, str] = Field(default_factory=dict, description="How the storage driver finds it again.")
    bytes: int = Field(description="Length of the JSON text.")
    preview: str = Field(description="Its first 200 characters, for people.")


class Call(Value):
    """One step's call of its tool."""

    args: dict[str, Any] = Field(description="Arguments, references filled in except those listed in `deferred`.")
    plan_id: str
    step_id: str
    key: str = Field(description="The same over all attempts of the call, different for every other call.")
    workspace: str = Field(description="Absolute directory the tool works in.")
    timeout: float = Field(description="Seconds this attempt may take.")
    retry: Retry = Field(description="Attempts (tool errors only; a worker's death does not count) and waits.")
    approved: bool = Field(default=False, description="A person, or a waiver, has allowed what needs approval.")
    repeatable: bool = Field(default=True, description="False: one attempt only, whatever becomes of its worker.")
    stamps: dict[str, Stamp] = Field(
        default_factory=dict, description="Those of the call's files that this run made or read, as it last saw them."
    )
    notes_seen: list[str] = Field(default_factory=list, description="agents.md of the call's files shown before.")
    notes_left: int = Field(default=NOTES_BYTES, description="Bytes of agents.md that this session may still take in.")
    deferred: list[list[str | int]] = Field(
        default_factory=list, description="Places in `args` whose references the activity fills in from `values`."
    )
    values: dict[str, Any] = Field(default_factory=dict, description="Inline values for the deferred references.")
    large: dict[str, LargeValue] = Field(default_factory=dict, description="Large values for the deferred references.")
    quoting: dict[str, Literal["shell", "python"]] = Field(default_factory=dict)


class Note(Value):
    """The instructions for agents that one directory holds (agents.md). `text` or `large` holds them."""

    path: str = Field(description="The agents.md, relative to the workspace.")
    bytes: int = Field(description="Length of what is kept, in UTF-8.")
    text: str | None = None
    large: LargeValue | None = None
    cut: bool = Field(default=False, description="There is more in the file than the session may take in.")
    step_id: str = Field(default="", description="The step that brought it in.")


class Return(Value):
    """What a tool gave back. Exactly one of `value` and `large` holds the value."""

    value: Any = None
    large: LargeValue | None = None
    duration: float = Field(description="Milliseconds, of the attempt that succeeded.")
    attempt: int = Field(default=1, description="Which attempt succeeded, tool errors counted only.")
    read: dict[str, Stamp] = Field(default_factory=dict, description="Files read, relative to the workspace.")
    wrote: dict[str, Stamp | None] = Field(
        default_factory=dict, description="Files and directories (null) made or changed, relative to the workspace."
    )
    deleted: list[str] = Field(default_factory=list, description="Files deleted, relative to the workspace.")
    shared: list[str] = Field(
        default_factory=list, description="Of these, what another step that ran at the same time may have done."
    )
    more_files: int = Field(default=0, description="Further files changed, too many to be listed.")
    sandbox: str = Field(default="", description="How far the commands it ran were shut in: bwrap, landlock, none.")
    notes: list[Note] = Field(default_factory=list, description="agents.md that concern the files read, parents first.")
    warnings: list[str] = Field(default_factory=list, description="What a person should know about the call.")


class CheckRequest(Value):
    """A plan to be checked by the worker that will run it."""

    plan: Plan | None = Field(default=None, description="Well-formed; whether it can run is asked. None: about tools.")
    queue: str | None = Field(
        default=None, description="The task queue asked: its worker judges the steps bound to it."
    )
    workspace: str | None = Field(default=None, description="Asked for by the client; the plan's own comes second.")
    inputs: dict[str, Any] = Field(default_factory=dict)
    all_tools: bool = Field(default=False, description="Tell of every tool: the plan may be edited, or be written yet.")


class Facts(Value):
    """What the workflow must know about the world before it starts; recorded once in history."""

    problems: list[Problem] = Field(default_factory=list)
    tools: dict[str, ToolSpec] = Field(default_factory=dict, description="The tools this plan names, or all.")
    all_tools: bool = Field(default=False, description="Whether these are all of the worker's tools.")
    workspace: str = Field(default="", description="Absolute directory of the steps bound to no queue of their own.")
    workspaces: dict[str, str] = Field(default_factory=dict, description="By queue, that of the steps bound to it.")
    strict_approvals: bool = Field(default=False, description="PLANS_APPROVALS=strict: no waiver counts.")
    search_attributes: bool = Field(default=False, description="The server knows PlanStatus and its kin.")
    keeps_summaries: bool = Field(default=False, description="The worker has a place for SUMMARY.md files.")


class SummaryFile(Value):
    """The end of a run, to be kept for people."""

    plan_id: str
    markdown: str


END_RECORD = "endRecord"
"""The entry of a plan's memo that says where its EndRecord is kept."""


class EndRecord(Value):
    """What is left of an ended run; it stands in history as the result of `record_end`."""

    summary: dict[str, Any]
    text: str = Field(description="The plan as text; of a big one the steps that moved last.")
    run: LargeValue | str = Field(description="The Run as JSON text, or where it is kept.")
    claim: LargeValue | None = Field(
        default=None, description="Where this record is kept; the workflow's memo says so. None: older, or no storage."
    )
