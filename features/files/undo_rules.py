"""Decides how the file changes of a plan are undone. Pure: no I/O.

Changes are undone per path, and only while the file is still as the run left it: a file that somebody else has changed
since is a conflict and never overwritten.

Calls that overlapped in time may have changed a path in any order, and each saw what the others left. They count as one
change: from the state before the first of them began to a state in which one of them saw the path when it had ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Literal

from plansurvive.features.files.model import ChangesReport, Refusal, Restore
from plansurvive.plans.definition.scopes import UNDO
from plansurvive.plans.files.changes import FOLDER, CallChanges, FileChange
from plansurvive.plans.flow.ids import covers, lineage
from plansurvive.plans.model import Value


def is_of(name: str, step_id: str | None) -> bool:
    """Whether a call is of the step asked for, of one inside it, of its undo, or of the plan or agent that it runs.

    `each[a].write`, `deploy.undo`, `deploy/upload` and `deploy.call_1` are of `each` and `deploy`; the first of
    `each[*].write` as well.
    """
    return step_id is None or name.startswith(f"{step_id}/") or covers(step_id, name)


def is_compensation(name: str) -> bool:
    """Whether a call is of a step's undo: `deploy.undo`, `each[a].write.undo.tell`, `deploy.undo/upload.undo`."""
    return any(each.endswith(f".{UNDO}") for part in name.split("/") for each in lineage(part))


def of_all_attempts(trial: ChangesReport, done: ChangesReport) -> ChangesReport:
    """What an undo has restored: what its last attempt found restored already, an attempt that was killed has done."""
    planned = {(each.workspace, each.path): each for each in trial.restored}
    whole = [planned.get((each.workspace, each.path), each) for each in done.restored]
    return done.model_copy(update={"restored": [each.model_copy(update={"done": True}) for each in whole]})


class _Link(Value):
    """One change of a path, with its call."""

    call: CallChanges
    change: FileChange
    is_chosen: bool

    @property
    def began(self) -> datetime:
        """When its call began."""
        return self.call.began or self.call.time


def decide_undo(
    calls: Iterable[CallChanges],
    step_id: str | None,
    now: Callable[[str, str], str],
    is_kept: Callable[[str], bool],
) -> tuple[list[Restore], list[Refusal]]:
    """Decide which paths to restore, in which order, and which to refuse.

    `now(workspace, path)` returns a path's current state; `is_kept` tells whether the content with a given hash is
    stored. The order: directories that are made, what is in directories (latest change first), directories removed.
    """
    chains: dict[tuple[str, str], list[_Link]] = {}
    for call in calls:
        for change in (each for each in call.changes if call.undone is None and each.undone is None):
            link = _Link(call=call, change=change, is_chosen=is_of(call.step_id, step_id))
            chains.setdefault((call.workspace, change.path), []).append(link)
    restored: list[tuple[datetime, Restore]] = []
    refused: list[Refusal] = []
    for (workspace, path), links in chains.items():
        chosen = [link for link in links if link.is_chosen]
        # What nothing but an undo wrote, such as a note of what it did, is its result: it stays.
        if all(is_compensation(link.call.step_id) for link in chosen):
            continue
        found = _decide(workspace, path, _overlapping(links), now(workspace, path), is_kept)
        if isinstance(found, Refusal):
            refused.append(found)
        else:
            restored.append((max(link.call.time for link in chosen), found))
    restored.sort(key=lambda each: (each[0], each[1].path.count("/"), each[1].path), reverse=True)
    return sorted((each for _, each in restored), key=_folders_last), refused


def _folders_last(each: Restore) -> tuple[int, int]:
    """The order of restoring, for a stable sort: a directory is made before its contents, and removed after them."""
    depth = each.path.count("/")
    if each.target == FOLDER:
        return 0, depth
    return (2, -depth) if each.expected == FOLDER else (1, 0)


def _overlapping(links: Iterable[_Link]) -> list[list[_Link]]:
    """The changes of a path in groups: those of calls that overlapped in time, the first to begin first."""
    groups: list[list[_Link]] = []
    ended = datetime.min.replace(tzinfo=UTC)
    for link in sorted(links, key=lambda link: (link.began, link.call.time)):
        if not groups or link.began >= ended:
            groups.append([])
        groups[-1].append(link)
        ended = max(ended, link.call.time)
    return groups


def _decide(
    workspace: str,
    path: str,
    groups: Sequence[list[_Link]],
    now: str,
    is_kept: Callable[[str], bool],
) -> Restore | Refusal:
    start = next(index for index, group in enumerate(groups) if any(link.is_chosen for link in group))
    last = max((link for group in groups for link in group if link.is_chosen), key=lambda link: link.call.time)
    for group in groups[start:]:
        other = next((link.call.step_id for link in group if not link.is_chosen), None)
        if other is not None:
            reason = f"step '{other}' changed it later; undo that step first"
            if any(link.is_chosen for link in group):
                reason = f"step '{other}' changed it, or may have, at the same time; undo the whole plan instead"
            return _refusal(last, "CONFLICT", reason)
    target = groups[start][0].change.before
    if target is None and start:  # the state before is what the previous change of this run left
        target = max(groups[start - 1], key=lambda link: link.call.time).change.after
    for earlier, later in pairwise(groups[start:]):
        before, left = later[0].change.before, _left_by(earlier)
        if before is not None and left and before not in left:
            reason = f"something else changed it before step '{later[0].call.step_id}' did"
            return _refusal(later[0], "CONFLICT", reason)
    if target is not None and now == target:
        return Restore(workspace=workspace, path=path, expected=now, target=target, done=True)
    if not _left_by(groups[-1]):
        reason = (
            "its content after the step is unknown (files of commands above 64 MiB); check it and restore it by hand"
        )
        return _refusal(last, "CONFLICT", reason)
    if now not in _left_by(groups[-1]):
        return _refusal(last, "CONFLICT", "it was changed since; check it and restore it by hand")
    if target is None or not (target in ("", FOLDER) or target.startswith("link:") or is_kept(target)):
        return _refusal(last, "NOT_KEPT", "its previous content is not stored (see PLANS_UNDO); restore it by hand")
    return Restore(workspace=workspace, path=path, expected=now, target=target, mode=groups[start][0].change.mode)


def _left_by(group: Sequence[_Link]) -> set[str | None]:
    """The known states in which these calls left a path: whichever of them wrote last left one of them."""
    return {link.change.after for link in group} - {None}


def _refusal(link: _Link, code: Literal["CONFLICT", "NOT_KEPT"], reason: str) -> Refusal:
    return Refusal(path=link.change.path, step_id=link.call.step_id, code=code, reason=reason)
