"""File stamps and agents.md of a run: what to send with a tool call, and how to record what the call returns.

Paths are relative to the default workspace. Those of a step whose queue has its own workspace are recorded as
`queue:path`, so that files of the same name in two workspaces are not confused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

from plansurvive.plans.activity_io import Note, Return
from plansurvive.plans.execution.tool_history import note_files, relative
from plansurvive.plans.expressions.references import Filled
from plansurvive.plans.file_stamps import NOTES_BYTES, Stamp, note_paths
from plansurvive.plans.log import LogKind
from plansurvive.plans.model import Step
from plansurvive.plans.run import Run
from plansurvive.plans.run.step_call import upcoming
from plansurvive.plans.text.lists import number_of, some

MAX_STAMPS = 2_000
"""Maximum number of stamps sent with a call whose path the workflow does not know: it is in a value outside history."""
MAX_READ = 5_000
"""Files of which a new run knows who read them."""
MAX_WARNINGS = 20
"""Maximum number of warnings recorded per call."""


class Known(NamedTuple):
    """What is sent with a call: stamps of its files, agents.md shown before, and bytes left for further agents.md."""

    stamps: dict[str, Stamp]
    notes_seen: list[str]
    notes_left: int


def known(run: Run, step: Step, filled: Filled) -> Known:
    """The stamps and agents.md that concern the files among a call's arguments."""
    scope, files = _scope(run, step), run.files
    left = _left(run)
    if not files.stamps and not files.notes_seen:
        return Known({}, [], left)
    if ["path"] in filled.deferred:
        recent = [name for name in files.stamps if name.startswith(scope)][-MAX_STAMPS:]
        stamps = {name.removeprefix(scope): files.stamps[name] for name in recent}
        return Known(stamps, [name.removeprefix(scope) for name in files.notes_seen], left)
    paths = list(_paths(run, step, filled))
    stamps = {path: files.stamps[scope + path] for path in paths if scope + path in files.stamps}
    above = {name for path in paths for names in note_paths(path) for name in names} if files.notes_seen else set()
    shown = [name.removeprefix(scope) for name in files.notes_seen if name.startswith(scope)]
    return Known(stamps, [name for name in shown if name in above], left)


def names_of_files(run: Run, step: Step, filled: Filled) -> list[str]:
    """The names under which the run has stamps of the files among a call's arguments, if it has any."""
    scope = _scope(run, step)
    return [scope + path for path in _paths(run, step, filled)]


def note_returned(run: Run, step: Step, returned: Return, now: datetime) -> None:
    """Record what a call did to files: in the step's state, and in the run's file stamps for later calls."""
    note_files(run, step.id, returned)
    track(run, step, returned, now)


def track(run: Run, step: Step, returned: Return, now: datetime) -> None:
    """Record the files a call read, wrote and deleted, the agents.md it returned, and its warnings."""
    if not (
        returned.read or returned.wrote or returned.deleted or returned.missing or returned.notes or returned.warnings
    ):
        return
    scope, files = _scope(run, step), run.files
    for path, stamp in [*returned.read.items(), *returned.wrote.items()]:
        if stamp is not None:
            files.track_read(scope + path, stamp)
    for path in (*returned.deleted, *returned.missing):
        files.track_deleted(scope + path)
    notes = [note.model_copy(update={"path": scope + note.path, "step_id": step.id}) for note in returned.notes]
    left_out = [sentence for note in notes if (sentence := _add_agents_md(run, note))]
    for warning in [*returned.warnings, *left_out][:MAX_WARNINGS]:
        run.steps[step.id].warnings.append(warning)
        run.note(LogKind.WARNING, warning, now, step.id)


def changed(run: Run, paths: list[str], by: str, now: datetime) -> None:
    """Mark the stamps of files, or of all files in directories, as stale: others have changed them."""
    stale = run.files.invalidate(relative(path, run.facts.workspace) for path in paths)
    if stale:
        run.note(LogKind.FILES_CHANGED, f"changed by {by or 'others'}: {some(stale, 10)}", now)


def readers(run: Run, names: Iterable[str]) -> dict[str, list[str]]:
    """By path of a tracked file, which of these steps read it with a tool that changes nothing.

    Computed from their arguments: which step read a file is not recorded with its stamp.
    """
    found: dict[str, list[str]] = {}
    for name in names:
        step = run.step_of(name)
        spec = run.facts.tools.get(step.tool) if step is not None else None
        if step is None or spec is None or spec.effect != "pure" or spec.reads != "reported":
            continue
        for path in dict.fromkeys(_paths(run, step, Filled(upcoming(run, step).call.args, []))):
            if (full := _scope(run, step) + path) in run.files.stamps and len(found) < MAX_READ:
                found.setdefault(full, []).append(name)
    return found


def rewritten(run: Run) -> list[str]:
    """The tracked files that commands of the run wrote after it had last seen them: it does not know what they hold.

    When a file was last seen is computed, as for `readers`, from what its steps name and wrote.
    """
    found, seen = dict[str, datetime](), dict[str, datetime]()
    ended = {name: state.ended for name, state in run.steps.items() if state.ended is not None and state.calls}
    for name, time in ended.items():
        step = run.outline.step(name)
        for path in run.steps[name].wrote if _is_opaque(run, step) else ():
            if (full := _scope(run, step) + path) in run.files.stamps:
                found[full] = max(time, found.get(full, time))
    for name, time in ended.items() if found else ():
        step = run.outline.step(name)
        if step.tool in run.facts.tools and not _is_opaque(run, step):
            named = _paths(run, step, Filled(upcoming(run, step).call.args, []))
            for full in (_scope(run, step) + path for path in (*named, *run.steps[name].wrote)):
                seen[full] = max(time, seen.get(full, time))
    return [full for full, time in found.items() if time >= seen.get(full, time)]


def _is_opaque(run: Run, step: Step) -> bool:
    """Whether a tool changes files without saying what they hold then, as commands do."""
    spec = run.facts.tools.get(step.tool)
    return spec is not None and spec.effect == "opaque" and not spec.durable


def clear(run: Run, text: str, now: datetime) -> None:
    """Forget all file stamps and agents.md shown: the session begins again. `text`: the log entry, saying by whom.

    Later edits are then of untracked files, and the agents.md come in again with the next read.
    """
    files = run.files
    number = len(files.stamps)
    forgot = f"{text}: {number_of(number, 'file stamp')} and {len(files.notes_seen)} agents.md forgotten"
    files.clear_session()
    run.notes.clear()
    run.note(LogKind.CLEARED, forgot, now)


def stamps(run: Run, paths: list[str] | None = None) -> dict[str, Stamp]:
    """The file stamps of a run: all of them, or those of `paths`."""
    seen = run.files.stamps
    return dict(seen) if paths is None else {path: seen[path] for path in paths if path in seen}


def stamps_for(run: Run, step: Step) -> dict[str, Stamp]:
    """The file stamps that concern an agent working on the step, by path in the workspace that it works in."""
    scope, others = _scope(run, step), tuple(f"{queue}:" for queue in run.facts.workspaces)
    return {
        name.removeprefix(scope): stamp
        for name, stamp in run.files.stamps.items()
        if (name.startswith(scope) if scope else not name.startswith(others))
    }


def _left(run: Run) -> int:
    """Bytes of agents.md text that the session may still add."""
    return max(0, NOTES_BYTES - sum(note.bytes for note in run.notes)) if run.notes else NOTES_BYTES


def _add_agents_md(run: Run, note: Note) -> str:
    """Add an agents.md to the session. Returns a warning if it does not fit, else "".

    Concurrent steps may return the same file, or together more than is left, since each knows only its own share.
    """
    if note.path in run.files.notes_seen:
        return ""
    run.files.notes_seen.append(note.path)
    if note.bytes > _left(run):
        return f"'{note.path}' was left out: with those of concurrent steps, agents.md texts exceed {NOTES_BYTES} bytes"
    run.notes.append(note)
    run.notes.sort(key=lambda each: (each.path.count("/"), each.path))
    return ""


def _paths(run: Run, step: Step, filled: Filled) -> Iterator[str]:
    for value in filled.args.values():
        if isinstance(value, str) and 0 < len(value) < 4_096 and "\n" not in value:
            yield relative(value, run.workspace_of(step))


def _scope(run: Run, step: Step) -> str:
    return f"{step.queue}:" if step.queue and step.queue in run.facts.workspaces else ""
