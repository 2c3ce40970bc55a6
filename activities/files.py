"""The tools for one file or directory: read_file, read_json, write_file, edit_file, create_directory, delete_file.

All stay inside the workspace. What changes something tolerates that an earlier attempt of the same call already did
it. Overwriting a file the run neither made nor read, and writing protected files, needs a person's approval.
"""

from __future__ import annotations

import json
import os
from typing import Annotated, Any, NoReturn, TypedDict

from pydantic import Field

from activities.contents import check_replaceable, read_bytes, read_text, write_bytes
from activities.edits import Edit, find_edit, is_done
from activities.paths import shown
from activities.tool import Tool, ToolContext, tool
from activities.workspace import Place, not_found
from plans.errors import ToolError

Count = Annotated[int, Field(ge=0, le=1_000_000_000)]


class Written(TypedDict):
    """What write_file gives back."""

    path: str
    bytes: int
    created: bool


class Edited(Written):
    """What edit_file gives back."""

    diff: str


class Created(TypedDict):
    """What create_directory gives back."""

    path: str
    created: bool


class Deleted(TypedDict):
    """What delete_file gives back."""

    path: str


@tool(effect="pure")
def read_file(path: str, context: ToolContext, offset: Count = 0, limit: Count | None = None) -> str:
    """Read a UTF-8 text file of at most 16 MiB.

    Args:
        path: The file, relative to the workspace.
        offset: Lines to leave out at the beginning.
        limit: Lines to read at most; all if not given.

    Returns:
        The text itself, line endings as they are in the file.
    """
    with context.workspace.file(path) as place:
        text = read_text(place)
    context.read(path)
    if not offset and limit is None:
        return text
    lines = text.split("\n")
    end = len(lines) if limit is None else offset + limit
    chosen = "\n".join(lines[offset:end])
    return chosen + "\n" if lines[offset:end] and end < len(lines) else chosen


@tool(effect="pure")
def read_json(path: str, context: ToolContext) -> Any:
    """Read a JSON file.

    Args:
        path: The file, relative to the workspace.

    Returns:
        The parsed value.
    """
    with context.workspace.file(path) as place:
        text = read_text(place)
    try:
        value = json.loads(text.removeprefix("\ufeff"), parse_constant=_not_finite)
    except (ValueError, RecursionError) as error:
        raise ToolError("BAD_JSON", f"{shown(path)} is not JSON: {error}; mend the file or use read_file") from None
    context.read(path)
    return value


@tool(effect="keyed")
def write_file(path: str, content: str, context: ToolContext) -> Written:
    """Write a text file whole; missing directories are made. Overwriting a file this run has not seen needs approval.

    Args:
        path: The file, relative to the workspace.
        content: The text to be in it afterwards.

    Returns:
        {path, bytes, created}; created is false when the file was there before.
    """
    data = _encoded(content)
    relative = context.workspace.relative(path)
    with context.workspace.file(path) as place:
        place.check_writing(context.call)
        if place.status is not None:
            check_replaceable(place)
            if _holds(place, data):
                context.wrote(path)
                return {"path": relative, "bytes": len(data), "created": False}
            if relative not in context.call.seen and not context.call.approved:
                raise ToolError(
                    "APPROVAL_REQUIRED",
                    f"{shown(relative)} exists and this run has neither made nor read it;"
                    " a person must approve overwriting it, or read_file first",
                )
        write_bytes(place, data, context.call.key, again=context.again)
        created = place.status is None
    context.wrote(path)
    return {"path": relative, "bytes": len(data), "created": created}


@tool(effect="keyed")
def edit_file(path: str, old_text: str, new_text: str, context: ToolContext) -> Edited:
    """Replace the one place where a passage stands in a text file. With an empty old text, make a new file.

    Args:
        path: The file, relative to the workspace.
        old_text: The passage to replace, exactly as it stands, with enough around it to be unique.
        new_text: What takes its place.

    Returns:
        {path, bytes, created, diff}; diff is a unified diff.
    """
    with context.workspace.file(path) as place:
        place.check_writing(context.call)
        edit = _edit(place, old_text, new_text, context)
        if edit is None:
            size, diff = _size(place), ""
        else:
            data, diff = _encoded(edit.result), edit.diff()
            write_bytes(place, data, context.call.key, again=context.again)
            size = len(data)
        created = place.status is None
    context.wrote(path)
    return {"path": context.workspace.relative(path), "bytes": size, "created": created, "diff": diff}


@tool(effect="keyed")
def create_directory(path: str, context: ToolContext) -> Created:
    """Make a directory and those above it; one that exists already is fine.

    Args:
        path: The directory, relative to the workspace.

    Returns:
        {path, created}; created is false when it was there before.
    """
    relative = context.workspace.relative(path)
    if relative == ".":
        return {"path": relative, "created": False}
    with context.workspace.file(relative) as place:
        if place.is_directory:
            return {"path": relative, "created": False}
        if place.status is not None:
            raise ToolError("EXISTS", f"{shown(relative)} is there and is no directory; choose another name")
        place.check_writing(context.call)
        place.missing = (*place.missing, place.name)
        place.make_folders()
    context.wrote(path)
    return {"path": relative, "created": True}


@tool(approval="always", effect="keyed")
def delete_file(path: str, context: ToolContext) -> Deleted:
    """Delete one file, or a link (never what it points to). Directories are not deleted.

    Args:
        path: The file, relative to the workspace.

    Returns:
        {path}.
    """
    relative = context.workspace.relative(path)
    with context.workspace.file(path, follow=False) as place:
        if place.is_directory:
            raise ToolError(
                "NOT_REGULAR",
                f"{shown(relative)} is a directory; use run_command with rmdir, or rm -r and its contents",
            )
        if place.status is not None:
            place.check_writing(context.call)
            os.unlink(place.name, dir_fd=place.directory)
            os.fsync(place.directory)
        elif not context.again:
            raise not_found(relative)
    return {"path": relative}


FILE_TOOLS: tuple[Tool, ...] = (read_file, read_json, write_file, edit_file, create_directory, delete_file)


def _edit(place: Place, old: str, new: str, context: ToolContext) -> Edit | None:
    """The edit to make; None when an earlier attempt made it."""
    if old == "":
        if place.status is None:
            return Edit(place.path, "", 0, "", new)
        if context.again and _holds(place, _encoded(new)):
            return None
        raise ToolError(
            "EXISTS", f"{shown(place.path)} exists, and empty oldText makes a new file; give the passage to replace"
        )
    text = read_text(place)
    check_replaceable(place)
    if context.again and is_done(text, old, new):
        return None
    return find_edit(place.path, text, old, new)


def _holds(place: Place, data: bytes) -> bool:
    return _size(place) == len(data) and read_bytes(place) == data


def _size(place: Place) -> int:
    return place.status.st_size if place.status is not None else 0


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ToolError("INVALID_ARGS", "the text is not valid Unicode (lone surrogates); give plain text") from None


def _not_finite(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")
