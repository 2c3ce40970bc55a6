"""What a run knows of the files a call concerns, and what it learns from a call's return.

Paths are relative to the default workspace; those of a step whose queue has a workspace of its own are listed as
`queue:path`, so that two files of one name are never taken for each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from plans.activity_io import Note, Return
from plans.definition.references import Filled
from plans.execution.tool_history import relative
from plans.file_stamps import NOTES_BYTES, Stamp, note_paths
from plans.log import LogKind
from plans.model import Step
from plans.run import Run

MAX_STAMPS = 2_000
"""Sent with a call whose path the workflow cannot know, because it is in a value kept outside history."""
MAX_WARNINGS = 20


class Known(NamedTuple):
    """What a call is told: stamps of its files, agents.md shown before, and bytes left for more of them."""

    stamps: dict[str, Stamp]
    notes_seen: list[str]
    notes_left: int


def known(run: Run, step: Step, filled: Filled) -> Known:
    """What the run knows about the files among a call's arguments."""
    scope, files = _scope(run, step), run.files
    left = _left(run)
    if ["path"] in filled.deferred:
        recent = [name for name in files.stamps if name.startswith(scope)][-MAX_STAMPS:]
        stamps = {name.removeprefix(scope): files.stamps[name] for name in recent}
        return Known(stamps, [name.removeprefix(scope) for name in files.notes_seen], left)
    paths = list(_paths(run, step, filled))
    stamps = {path: files.stamps[scope + path] for path in paths if scope + path in files.stamps}
    above = {name for path in paths for names in note_paths(path) for name in names} if files.notes_seen else set()
    shown = [name.removeprefix(scope) for name in files.notes_seen if name.startswith(scope)]
    return Known(stamps, [name for name in shown if name in above], left)


def track(run: Run, step: Step, returned: Return, now: datetime) -> None:
    """Take in what a call read, wrote and deleted, the agents.md it brought, and its warnings."""
    scope, files = _scope(run, step), run.files
    for path, stamp in [*returned.read.items(), *returned.wrote.items()]:
        if stamp is not None:
            files.track_read(scope + path, stamp)
    for path in returned.deleted:
        files.track_deleted(scope + path)
    notes = [note.model_copy(update={"path": scope + note.path, "step_id": step.id}) for note in returned.notes]
    left_out = [sentence for note in notes if (sentence := _bring_in(run, note))]
    for warning in [*returned.warnings, *left_out][:MAX_WARNINGS]:
        run.steps[step.id].warnings.append(warning)
        run.note(LogKind.WARNING, warning, now, step.id)


def changed(run: Run, paths: list[str], by: str, now: datetime) -> None:
    """Somebody changed these files or directories: what the run saw of them is stale until it reads them again."""
    found = run.files.invalidate(relative(path, run.facts.workspace) for path in paths)
    if found:
        more = f" and {len(found) - 10} more" if len(found) > 10 else ""
        run.note(LogKind.FILES_CHANGED, f"changed by {by or 'others'}: {', '.join(found[:10])}{more}", now)


def stamps(run: Run, paths: list[str] | None = None) -> dict[str, Stamp]:
    """The files a run knows, as it last saw them; of these paths only, when there are some."""
    seen = run.files.stamps
    return dict(seen) if paths is None else {path: seen[path] for path in paths if path in seen}


def _left(run: Run) -> int:
    """Bytes of agents.md that the session may still take in."""
    return max(0, NOTES_BYTES - sum(note.bytes for note in run.notes))


def _bring_in(run: Run, note: Note) -> str:
    """Keep an agents.md; what to warn of if it is not kept.

    Two steps that ran at the same time may bring the same one, or, each within what it was told is left, too much.
    """
    if note.path in run.files.notes_seen:
        return ""
    run.files.notes_seen.append(note.path)
    if note.bytes > _left(run):
        return f"'{note.path}' was not taken in: steps that ran at the same time used up what a session takes in"
    run.notes.append(note)
    run.notes.sort(key=lambda each: (each.path.count("/"), each.path))
    return ""


def _paths(run: Run, step: Step, filled: Filled) -> Iterator[str]:
    for value in filled.args.values():
        if isinstance(value, str) and 0 < len(value) < 4_096 and "\n" not in value:
            yield relative(value, run.workspace_of(step))


def _scope(run: Run, step: Step) -> str:
    return f"{step.queue}:" if step.queue and step.queue in run.facts.workspaces else ""
