"""File changes made by tool calls, as values.

The state of a path is a string: the xxh3-128 hash of a file's content, `link:TARGET`, FOLDER, or empty if nothing is
there; None if unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from pydantic import Field

from plansurvive.plans.model import Value

FOLDER = "folder"

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
    undone: datetime | None = Field(default=None, description="When it was undone; of a call, it may be the only one.")
    size: int | None = Field(default=None, ge=0, description="Of one that was undone: bytes that are there again.")


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


class RestoredFile(Value):
    """A file as an undo has left it."""

    step_id: str = Field(description="The step of the plan whose change was undone.")
    workspace: str
    path: str = Field(description="Relative to the workspace.")
    state: str | None = Field(default=None, description="What is there; null if unknown.")
    size: int | None = Field(default=None, ge=0, description="Bytes of that content; null if it is not stored.")
    ours: bool = Field(default=False, description="The plan itself had made it so, with a change that stands.")


class RestoredFiles(Value):
    """What undos have done to the files of a plan since it ended."""

    steps: list[str] = Field(default_factory=list, description="Steps whose last changes were undone, whole or partly.")
    files: list[RestoredFile] = Field(default_factory=list)


def followed(earlier: Sequence[FileChange], later: Sequence[FileChange]) -> list[FileChange]:
    """The changes of two attempts of a call, one after the other, as those of one.

    Where the state between them is not the one that the first left, somebody else was there: the later change counts.
    """
    found = {change.path: change for change in earlier}
    for change in later:
        first = found.pop(change.path, None)
        joined = _joined(first, change) if first is not None and first.after == change.before else change
        if joined is not None:
            found[change.path] = joined
    return list(found.values())


def _joined(first: FileChange, last: FileChange) -> FileChange | None:
    """One change instead of two of a path; None if it was created and is gone."""
    if first.before == last.after == "":
        return None
    kind: Literal["changed", "created", "deleted"] = "changed"
    if "" in (first.before, last.after):
        kind = "deleted" if last.after == "" else "created"
    others = [*first.others, *(each for each in last.others if each not in first.others)]
    given = {"kind": kind, "after": last.after, "shared": first.shared or last.shared, "others": others}
    return first.model_copy(update=given)
