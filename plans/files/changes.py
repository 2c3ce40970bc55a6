"""File changes made by tool calls, as values, and what is asked and answered about them.

The state of a path is a string: the xxh3-128 hash of a file's content, `link:TARGET`, FOLDER, or empty if nothing is
there; None if unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from plansurvive.plans.model import Queue, Value
from plansurvive.plans.signature import Signature

FOLDER = "folder"
UndoCode = Literal["CONFLICT", "NOT_KEPT", "WORKSPACE_MOVED"]
"""Why a path is not restored."""


MAX_NAMED = 5
"""Steps named at most where a change is one of theirs."""


def one_of(step_id: str, others: Sequence[str]) -> str:
    """Says for people whose a change may be: `one of a, b`."""
    if not others:
        return f"{step_id}, or whatever ran at the same time"
    more = f" and {len(others) - MAX_NAMED} more" if len(others) > MAX_NAMED else ""
    return f"one of {', '.join([step_id, *others[:MAX_NAMED]])}{more}"


class FileChange(Value):
    """One path changed by a tool call."""

    path: str = Field(description="Relative to the workspace.")
    kind: Literal["created", "changed", "deleted"]
    before: str | None = Field(default=None, description="State before; null if unknown.")
    after: str | None = Field(default=None, description="State after; null if unknown.")
    mode: int | None = Field(default=None, description="Permission bits before.")
    shared: bool = Field(default=False, description="A concurrent step may have made the change.")
    others: list[str] = Field(default_factory=list, description="The steps that may have made it instead.")
    diff: str = Field(default="", description="Unified diff, if both contents are stored and are text.")


class CallChanges(Value):
    """The file changes of one tool call."""

    key: str = Field(description="Idempotency key of the call, the same for all its attempts.")
    plan_id: str
    step_id: str
    tool: str = ""
    workspace: str
    began: datetime | None = Field(default=None, description="When it began; null: it took no time, or is not known.")
    time: datetime = Field(description="When it ended.")
    changes: list[FileChange] = Field(default_factory=list)
    more: int = Field(default=0, description="Number of further changes that are not listed.")
    undone: datetime | None = Field(default=None, description="When it was undone.")


class ChangesRequest(Value):
    """Input of the `file_changes` activity: list the file changes of a plan, or undo them."""

    plan_id: str = Field(max_length=1_000)
    step_id: str | None = Field(default=None, max_length=1_000, description="Only the changes of this step.")
    plans: dict[Annotated[str, Field(max_length=1_000)], Annotated[str, Field(max_length=4_000)]] = Field(
        default_factory=dict,
        max_length=100_000,
        description="The plan's set (`children.family`): by plan or agent, what its steps' ids have in front.",
    )
    undo: bool = False
    dry_run: bool = Field(default=True, description="Report what undo would do, without doing it.")
    partly: bool = Field(default=False, description="Undo what can be undone; otherwise any conflict undoes nothing.")
    diffs: bool = True
    queues: list[Queue] = Field(
        default_factory=list,
        max_length=1_000,
        description="Task queues whose workers are asked; empty: the default queue.",
    )
    signature: Signature | None = Field(default=None, description="Of the start, by the key of the worker.")
    message: str = Field(default="", max_length=64, description="Digest of what is signed; the workflow computes it.")


class Restore(Value):
    """A path to restore."""

    workspace: str
    path: str
    expected: str = Field(description="State the path must be in now.")
    target: str = Field(description="State to restore.")
    mode: int | None = None
    done: bool = Field(default=False, description="It is in the target state already, or was restored to it.")


class Refusal(Value):
    """A path that is not restored, and why."""

    path: str
    step_id: str
    code: UndoCode
    reason: str
    diff: str = ""


class ChangesReport(Value):
    """Output of the `file_changes` activity: the changes, and for an undo what was restored and what was refused."""

    calls: list[CallChanges] = Field(default_factory=list)
    restored: list[Restore] = Field(
        default_factory=list, description="Paths restored (or to be restored), in this order."
    )
    refused: list[Refusal] = Field(default_factory=list)
    dry_run: bool = True
