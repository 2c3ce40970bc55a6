"""What calls changed in files, and what taking that back means: values and the one decision, no I/O.

A state of a path is a text: the xxh3-128 hash of a file's content, `link:TARGET`, FOLDER, or empty for nothing there;
None when it was not learned. Changes are undone backwards, per path, and only where the file is still as the run left
it: what somebody else has changed since is refused, never overwritten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Literal

from pydantic import Field

from plans.model import Value

FOLDER = "folder"


class FileChange(Value):
    """One path that a call changed."""

    path: str = Field(description="Relative to the workspace.")
    kind: Literal["created", "changed", "deleted"]
    before: str | None = Field(default=None, description="State before; null: not known.")
    after: str | None = Field(default=None, description="State after; null: not known.")
    mode: int | None = Field(default=None, description="Permission bits before.")
    shared: bool = Field(default=False, description="Another step that ran at the same time may have done it.")
    diff: str = Field(default="", description="Unified diff, where both contents are kept and are text.")


class CallChanges(Value):
    """What one call of a tool changed."""

    key: str = Field(description="The call's own, the same over all its attempts.")
    plan_id: str
    step_id: str
    tool: str = ""
    workspace: str
    time: datetime
    changes: list[FileChange] = Field(default_factory=list)
    more: int = Field(default=0, description="Further changes, not listed.")
    undone: datetime | None = Field(default=None, description="When it was taken back.")


class ChangesRequest(Value):
    """What a plan changed, as the worker that has its workspace knows it; with `undo`, take it back."""

    plan_id: str
    step_id: str | None = Field(default=None, description="Of this step only.")
    undo: bool = False
    dry_run: bool = Field(default=True, description="Only say what undoing would do.")
    partly: bool = Field(default=False, description="Undo what can be undone; else one refusal is enough for nothing.")
    diffs: bool = True
    queues: list[str] = Field(
        default_factory=list, description="Task queues whose workers are asked; none: the default."
    )


class Restore(Value):
    """A path that is put back."""

    workspace: str
    path: str
    expected: str = Field(description="State it must be in.")
    target: str = Field(description="State it is put into.")
    mode: int | None = None
    done: bool = Field(default=False, description="It is in that state already, or was put into it.")


class Refusal(Value):
    """A path that is not put back, and why."""

    path: str
    step_id: str
    code: Literal["CONFLICT", "NOT_KEPT"]
    reason: str
    diff: str = ""


class ChangesReport(Value):
    """The answer: what was changed, and for an undo what is or was restored and what is refused."""

    calls: list[CallChanges] = Field(default_factory=list)
    restored: list[Restore] = Field(default_factory=list, description="What is put back, or would be; latest first.")
    refused: list[Refusal] = Field(default_factory=list)
    dry_run: bool = True


class _Link(Value):
    """One change of a path, with the call it belongs to."""

    call: CallChanges
    change: FileChange


def decide_undo(
    calls: Iterable[CallChanges],
    step_id: str | None,
    now: Callable[[str, str], str],
    is_kept: Callable[[str], bool],
) -> tuple[list[Restore], list[Refusal]]:
    """What to put back, latest change first, and what cannot be.

    `calls` are oldest first; `now(workspace, path)` is a path's present state; `is_kept` tells whether a content is
    there.
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
    # A created directory goes after what is in it, a deleted one comes before.
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
        target = links[start - 1].change.after  # nothing else of this run came between
    broken = next((link for one, link in pairwise(chosen) if _is_broken(one, link)), None)
    if broken is not None:
        return _refusal(broken, "CONFLICT", f"something else changed it before step '{broken.call.step_id}' did")
    if target is not None and now == target:
        return Restore(workspace=workspace, path=path, expected=now, target=target, done=True)
    if last.change.after is None or now != last.change.after:
        return _refusal(last, "CONFLICT", "it was changed since; look at it, and mend it by hand")
    if target is None or not (target in ("", FOLDER) or target.startswith("link:") or is_kept(target)):
        return _refusal(last, "NOT_KEPT", "its content before is not kept (see PLANS_UNDO); it must be mended by hand")
    return Restore(workspace=workspace, path=path, expected=now, target=target, mode=first.change.mode)


def _is_broken(earlier: _Link, later: _Link) -> bool:
    before, after = later.change.before, earlier.change.after
    return before is not None and after is not None and before != after


def _refusal(link: _Link, code: Literal["CONFLICT", "NOT_KEPT"], reason: str) -> Refusal:
    return Refusal(path=link.change.path, step_id=link.call.step_id, code=code, reason=reason)
