"""File changes made by tool calls, and the decision how to undo them. Pure: no I/O.

The state of a path is a string: the xxh3-128 hash of a file's content, `link:TARGET`, FOLDER, or empty if nothing is
there; None if unknown. Changes are undone in reverse order, per path, and only while the file is still as the run left
it: a file that somebody else has changed since is a conflict and never overwritten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Literal

from pydantic import Field

from plans.model import Queue, Value

FOLDER = "folder"


class FileChange(Value):
    """One path changed by a tool call."""

    path: str = Field(description="Relative to the workspace.")
    kind: Literal["created", "changed", "deleted"]
    before: str | None = Field(default=None, description="State before; null if unknown.")
    after: str | None = Field(default=None, description="State after; null if unknown.")
    mode: int | None = Field(default=None, description="Permission bits before.")
    shared: bool = Field(default=False, description="A concurrent step may have made the change.")
    diff: str = Field(default="", description="Unified diff, if both contents are stored and are text.")


class CallChanges(Value):
    """The file changes of one tool call."""

    key: str = Field(description="Idempotency key of the call, the same for all its attempts.")
    plan_id: str
    step_id: str
    tool: str = ""
    workspace: str
    time: datetime
    changes: list[FileChange] = Field(default_factory=list)
    more: int = Field(default=0, description="Number of further changes that are not listed.")
    undone: datetime | None = Field(default=None, description="When it was undone.")


class ChangesRequest(Value):
    """Input of the `file_changes` activity: list the file changes of a plan, or undo them."""

    plan_id: str = Field(max_length=1_000)
    step_id: str | None = Field(default=None, max_length=1_000, description="Only the changes of this step.")
    undo: bool = False
    dry_run: bool = Field(default=True, description="Report what undo would do, without doing it.")
    partly: bool = Field(default=False, description="Undo what can be undone; otherwise any conflict undoes nothing.")
    diffs: bool = True
    queues: list[Queue] = Field(
        default_factory=list,
        max_length=1_000,
        description="Task queues whose workers are asked; empty: the default queue.",
    )


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
    code: Literal["CONFLICT", "NOT_KEPT"]
    reason: str
    diff: str = ""


class ChangesReport(Value):
    """Output of the `file_changes` activity: the changes, and for an undo what was restored and what was refused."""

    calls: list[CallChanges] = Field(default_factory=list)
    restored: list[Restore] = Field(
        default_factory=list, description="Paths restored (or to be restored), latest change first."
    )
    refused: list[Refusal] = Field(default_factory=list)
    dry_run: bool = True


class _Link(Value):
    """One change of a path, with its call."""

    call: CallChanges
    change: FileChange


def decide_undo(
    calls: Iterable[CallChanges],
    step_id: str | None,
    now: Callable[[str, str], str],
    is_kept: Callable[[str], bool],
) -> tuple[list[Restore], list[Refusal]]:
    """Decide which paths to restore, latest change first, and which to refuse.

    `calls` are in chronological order; `now(workspace, path)` returns a path's current state; `is_kept` tells whether
    the content with a given hash is stored.
    """
    chains: dict[tuple[str, str], list[_Link]] = {}
    for call in calls:
        for change in call.changes if call.undone is None else ():
            chains.setdefault((call.workspace, change.path), []).append(_Link(call=call, change=change))
    restored: list[tuple[datetime, Restore]] = []
    refused: list[Refusal] = []
    for (workspace, path), links in chains.items():
        chosen = [link for link in links if step_id is None or link.call.step_id == step_id]
        if not chosen:
            continue
        found = _decide(workspace, path, links, chosen, now(workspace, path), is_kept)
        if isinstance(found, Refusal):
            refused.append(found)
        else:
            restored.append((chosen[-1].call.time, found))
    # Remove a created directory after its contents; restore a deleted one before them.
    ordered = sorted(restored, key=lambda each: (each[0], each[1].path.count("/"), each[1].path), reverse=True)
    return [each for _, each in ordered], refused


def _decide(
    workspace: str, path: str, links: Sequence[_Link], chosen: Sequence[_Link], now: str, is_kept: Callable[[str], bool]
) -> Restore | Refusal:
    first, last = chosen[0], chosen[-1]
    start = links.index(first)
    between = [link for link in links[start:] if link not in chosen]
    if between:
        other = between[0].call.step_id
        return _refusal(last, "CONFLICT", f"step '{other}' changed it later; undo that step first")
    target = first.change.before
    if target is None and start:
        target = links[start - 1].change.after  # the state before is what the previous change of this run left
    broken = next((link for one, link in pairwise(chosen) if _is_broken(one, link)), None)
    if broken is not None:
        return _refusal(broken, "CONFLICT", f"something else changed it before step '{broken.call.step_id}' did")
    if target is not None and now == target:
        return Restore(workspace=workspace, path=path, expected=now, target=target, done=True)
    if last.change.after is None or now != last.change.after:
        return _refusal(last, "CONFLICT", "it was changed since; check it and restore it by hand")
    if target is None or not (target in ("", FOLDER) or target.startswith("link:") or is_kept(target)):
        return _refusal(last, "NOT_KEPT", "its previous content is not stored (see PLANS_UNDO); restore it by hand")
    return Restore(workspace=workspace, path=path, expected=now, target=target, mode=first.change.mode)


def _is_broken(earlier: _Link, later: _Link) -> bool:
    before, after = later.change.before, earlier.change.after
    return before is not None and after is not None and before != after


def _refusal(link: _Link, code: Literal["CONFLICT", "NOT_KEPT"], reason: str) -> Refusal:
    return Refusal(path=link.change.path, step_id=link.call.step_id, code=code, reason=reason)
