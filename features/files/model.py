"""What is asked about a plan's file changes, and answered; and what undoes its steps."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from plansurvive.plans.files.changes import CallChanges
from plansurvive.plans.files.file_check import FilesSeen
from plansurvive.plans.model import Queue, Value
from plansurvive.plans.signature import Signature

UndoCode = Literal["CONFLICT", "NOT_KEPT", "WORKSPACE_MOVED"]
"""Why a path is not restored."""


class ChangesRequest(Value):
    """Input of the `file_changes` activity: list the file changes of a plan, or undo them.

    With `seen` the workflow lists instead which of these files differ from it now (`compare_files`).
    """

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
    seen: FilesSeen | None = Field(default=None, description="Files as the plan last saw them, to be compared.")
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


class UndoCall(Value):
    """What undoes a step: a call, or steps."""

    step_id: str = Field(description="The step that is undone.")
    undo_id: str = Field(description="Names it in `plan approve`.")
    tool: str = Field(default="", description="Empty: it has steps.")
    args: dict[str, Any] = Field(default_factory=dict, description="Of the call; or the steps as they are written.")
