"""The agents.md that concern a file: its directory's and those above it inside the workspace, parents first.

Each is brought in once per session, and all together are bounded. Only plain files of UTF-8 text inside the workspace
count; anything else is a warning in the step's record, never a reason for reading to fail.
"""

from __future__ import annotations

import codecs

from activities.tools.tool import ToolContext
from activities.workspace.contents import read_head
from activities.workspace.paths import shown
from activities.workspace.workspace import Place
from plans.activity_io import Note
from plans.errors import ToolError
from plans.file_stamps import new_notes


def collect(context: ToolContext, path: str) -> None:
    """Add to the context the agents.md that concern the file and were not brought in before."""
    left = context.call.notes_left
    for candidates in new_notes(path, context.call.notes_seen):
        left -= _of_directory(context, candidates, left)


def _of_directory(context: ToolContext, candidates: list[str], left: int) -> int:
    """Take the first that can be used; returns how many bytes of the budget it used up."""
    for number, name in enumerate(candidates):
        try:
            with context.workspace.file(name) as place:
                if place.status is None:
                    continue
                note = _note(place, name, left)
        except (ToolError, OSError) as error:
            reason = error.message if isinstance(error, ToolError) else error.strerror
            context.warn(f"{shown(name)} was not taken in: {reason}")
            continue
        _tell(context, note, [other for other in candidates[number + 1 :] if _is_there(context, other)])
        context.notes.append(note)
        return note.bytes
    return 0


def _note(place: Place, name: str, left: int) -> Note:
    data = read_head(place, left + 1)
    if b"\0" in data:
        raise ToolError("BINARY_FILE", "it holds binary data")
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(data[:left], final=len(data) <= left)
    except UnicodeDecodeError:
        raise ToolError("BINARY_FILE", "it is not UTF-8 text") from None
    return Note(path=name, bytes=len(text.encode()), text=text, cut=len(data) > left)


def _tell(context: ToolContext, note: Note, others: list[str]) -> None:
    if note.cut:
        context.warn(f"{shown(note.path)} was cut after {note.bytes} bytes: a session takes in no more agents.md")
    if others:
        context.warn(f"{shown(note.path)} was taken in, {shown(others[0])} beside it was not: one per directory counts")


def _is_there(context: ToolContext, name: str) -> bool:
    try:
        with context.workspace.file(name) as place:
            return place.status is not None
    except (ToolError, OSError):
        return False
