"""Loads the agents.md files that apply to a file: of its directory and all above it in the workspace, parents first.

Each is loaded once per session, and their total size is limited. Only regular UTF-8 files inside the workspace count;
anything else is a warning in the step's record and never makes reading the file fail.
"""

from __future__ import annotations

import codecs

from plansurvive.activities.tools.tool import ToolContext
from plansurvive.activities.workspace.contents import read_head
from plansurvive.activities.workspace.paths import shown
from plansurvive.activities.workspace.workspace import DirectoryEntry
from plansurvive.plans.activity_io import Note
from plansurvive.plans.errors import ToolError
from plansurvive.plans.file_stamps import new_notes


def collect(context: ToolContext, path: str) -> None:
    """Add to the context the text of each agents.md that applies to the file and was not loaded in this session."""
    context.files_noted.append(path)
    left = context.call.notes_left
    for candidates in new_notes(path, context.call.notes_seen):
        left -= _of_directory(context, candidates, left)


def _of_directory(context: ToolContext, candidates: list[str], left: int) -> int:
    """Load the first usable candidate of one directory; returns how many bytes of the budget it used."""
    for number, name in enumerate(candidates):
        try:
            with context.workspace.file(name) as place:
                if place.status is None:
                    continue
                note = _load(place, name, left)
        except (ToolError, OSError) as error:
            reason = error.message if isinstance(error, ToolError) else error.strerror
            context.warn(f"{shown(name)} was not loaded: {reason}")
            continue
        _warn(context, note, [other for other in candidates[number + 1 :] if _is_there(context, other)])
        context.notes.append(note)
        return note.bytes
    return 0


def _load(place: DirectoryEntry, name: str, left: int) -> Note:
    data = read_head(place, left + 1)
    if b"\0" in data:
        raise ToolError("BINARY_FILE", "it contains binary data")
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(data[:left], final=len(data) <= left)
    except UnicodeDecodeError:
        raise ToolError("BINARY_FILE", "it is not UTF-8 text") from None
    return Note(path=name, bytes=len(text.encode()), text=text, cut=len(data) > left)


def _warn(context: ToolContext, note: Note, others: list[str]) -> None:
    if note.cut:
        context.warn(
            f"{shown(note.path)} was truncated to {note.bytes} bytes: the agents.md limit of the session is reached"
        )
    if others:
        context.warn(
            f"{shown(note.path)} was loaded and {shown(others[0])} beside it ignored: only one per directory is used"
        )


def _is_there(context: ToolContext, name: str) -> bool:
    try:
        with context.workspace.file(name) as place:
            return place.status is not None
    except (ToolError, OSError):
        return False
