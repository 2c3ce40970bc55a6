"""The tools for one file or directory: read_file, read_json, write_file, edit_file, create_directory, delete_file.

All stay inside the workspace. Changes go through `activities.tools.file_change`: one call at a time per file, refused
when the file differs from its stamp (CONFLICT), applied exactly once however often the call is retried. Overwriting a
file that the run neither created nor read, and writing protected files, requires a person's approval.
"""

from __future__ import annotations

from typing import Annotated, Any, TypedDict, cast

from pydantic import Field

from plansurvive.activities.tools.agents_md import collect
from plansurvive.activities.tools.file_change import Change, NewContent, changing
from plansurvive.activities.tools.text_edit import Edit, find_edit
from plansurvive.activities.tools.tool import Tool, ToolContext, tool
from plansurvive.activities.values.results import json_value
from plansurvive.activities.workspace.contents import check_replaceable, read_bytes, read_lines, text_of
from plansurvive.activities.workspace.effect_log import Effect
from plansurvive.activities.workspace.paths import shown
from plansurvive.activities.workspace.workspace import DirectoryEntry, not_found
from plansurvive.plans.errors import ToolError
from plansurvive.plans.file_stamps import Stamp, stamp_of
from plansurvive.plans.files.owned import is_owned
from plansurvive.runtime.value_store import StoredText

SMALL_BYTES = 1024 * 1024
"""If only some lines of a larger file are requested, it is read in chunks."""

Count = Annotated[int, Field(ge=0, le=1_000_000_000)]


class Written(TypedDict):
    """The value of write_file."""

    path: str
    bytes: int
    created: bool


class Edited(Written):
    """The value of edit_file."""

    diff: str


class Created(TypedDict):
    """The value of create_directory."""

    path: str
    created: bool


class Deleted(TypedDict):
    """The value of delete_file."""

    path: str


@tool(effect="pure", quick=True, reads="reported", outside=False)
def read_file(path: str, context: ToolContext, offset: Count = 0, limit: Count | None = None) -> str:
    """Read a UTF-8 text file, or a range of its lines; at most 16 MiB per call.

    Args:
        path: Path of the file, relative to the workspace.
        offset: Number of lines to skip at the beginning of the file.
        limit: Maximum number of lines to read; default: all.

    Returns:
        The text, with the line endings of the file.
    """
    with context.reading(path) as place:
        if limit is None or (place.status is not None and place.status.st_size <= SMALL_BYTES):
            chosen = _lines(_read(place, context), offset, limit)
        else:
            data, stamp = read_lines(place, offset, limit)
            chosen = text_of(place, data)
            context.read(path, stamp)
    collect(context, context.workspace.relative(path))
    return chosen


@tool(effect="pure", quick=True, reads="reported", outside=False)
def read_json(path: str, context: ToolContext) -> Any:
    """Read and parse a JSON file.

    Args:
        path: Path of the file, relative to the workspace.

    Returns:
        The parsed JSON value.
    """
    with context.reading(path) as place:
        text = _read(place, context)
    try:
        value = json_value(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise ToolError(
            "BAD_JSON", f"{shown(path)} is not valid JSON: {error}; fix the file or use read_file"
        ) from None
    return value


@tool(effect="keyed", quick=True, reads="reported", outside=False)
def write_file(path: str, content: str | StoredText, context: ToolContext) -> Written:
    """Create or overwrite a text file and its missing parent directories.

    Overwriting a file that this run has neither created nor read requires approval.

    Args:
        path: Path of the file, relative to the workspace.
        content: The complete new text of the file.

    Returns:
        {path, bytes, created}; created is false if the file already existed.
    """
    new = NewContent.of(content, context)
    with changing(context, path) as change:
        place = change.place
        if change.earlier:
            return cast(Written, _done(change, change.earlier, whole=True))
        place.check_writing(context.call)
        new.check_length(place)
        value: Written = {"path": place.path, "bytes": new.length, "created": place.status is None}
        stamp = change.now
        if not new.is_that_of(change):
            change.check()
            check_replaceable(place)
            _check_known(change)
            stamp = _made(change.write(new, value))
    context.wrote(path, stamp)
    return value


@tool(effect="keyed", quick=True, outside=False)
def edit_file(path: str, old_text: str, new_text: str, context: ToolContext) -> Edited:
    """Replace the only occurrence of a text in a file. With an empty oldText, create a new file.

    Args:
        path: Path of the file, relative to the workspace.
        old_text: The text to replace, exactly as in the file, with enough context to occur only once.
        new_text: The text that replaces it.

    Returns:
        {path, bytes, created, diff}; diff is a unified diff.
    """
    with changing(context, path) as change:
        place = change.place
        if change.earlier:
            return cast(Edited, _done(change, change.earlier))
        place.check_writing(context.call)
        edit = _edit(change, old_text, new_text)
        new = NewContent.of(edit.result, context)
        new.check_length(place)
        value: Edited = {
            "path": place.path, "bytes": new.length, "created": place.status is None, "diff": edit.diff()
        }  # fmt: skip
        seen = context.call.stamps.get(place.path)
        stamp = change.write(new, value)
        if value["created"] or (seen is not None and seen.made):
            stamp = _made(stamp)
    context.wrote(path, stamp)
    return value


@tool(effect="keyed", quick=True, reads="reported", outside=False)
def create_directory(path: str, context: ToolContext) -> Created:
    """Create a directory and its missing parents. Succeeds if it already exists.

    Args:
        path: Path of the directory, relative to the workspace.

    Returns:
        {path, created}; created is false if the directory already existed.
    """
    relative = context.workspace.relative(path)
    if relative == ".":
        return {"path": relative, "created": False}
    with changing(context, relative) as change:
        place = change.place
        if change.earlier:
            return cast(Created, _done(change, change.earlier))
        if place.is_directory:
            return {"path": relative, "created": False}
        if place.status is not None:
            raise ToolError("EXISTS", f"{shown(relative)} exists and is not a directory; choose another name")
        place.check_writing(context.call, is_folder=True)
        value: Created = {"path": relative, "created": True}
        change.make_directory(value)
    context.wrote(path)
    return value


@tool(approval="always", effect="keyed", outside=False)
def delete_file(path: str, context: ToolContext) -> Deleted:
    """Delete one file, or a symbolic link but not its target. Does not delete directories.

    Args:
        path: Path of the file, relative to the workspace.

    Returns:
        {path}: the deleted path.
    """
    relative = context.workspace.relative(path)
    with changing(context, path, follow=False) as change:
        if not change.earlier:
            _check_deletable(change)
            status = change.place.status
            change.delete({"path": relative, "mode": status.st_mode if status else None})
    context.deleted(path)
    return {"path": relative}


FILE_TOOLS: tuple[Tool, ...] = (read_file, read_json, write_file, edit_file, create_directory, delete_file)


def _read(place: DirectoryEntry, context: ToolContext) -> str:
    """The text of a file. Records its stamp, and stores the content so that a later conflict can show a diff."""
    data = read_bytes(place)
    text = text_of(place, data)
    context.effects.preimages.keep(data)
    context.read(place.path, stamp_of(data, linked=place.linked))
    return text


def _lines(text: str, offset: int, limit: int | None) -> str:
    if not offset and limit is None:
        return text
    lines = text.split("\n")
    end = len(lines) if limit is None else offset + limit
    chosen = "\n".join(lines[offset:end])
    return chosen + "\n" if lines[offset:end] and end < len(lines) else chosen


def _made(stamp: Stamp) -> Stamp:
    """The stamp of a file whose whole content the run has made."""
    return stamp.model_copy(update={"made": True})


def _done(change: Change, effect: Effect, *, whole: bool = False) -> Any:
    """The value of an earlier attempt, which made the change and died before it could report it.

    `whole`: the call replaces all of the content.
    """
    stamp = Stamp(hash=effect.after, size=effect.size, linked=change.place.linked) if effect.kind == "write" else None
    change.context.wrote(change.place.path, _made(stamp) if stamp and (whole or not effect.before) else stamp)
    return effect.value


def _check_known(change: Change) -> None:
    """Raise APPROVAL_REQUIRED if the call would overwrite a file that this run neither created nor read.

    In a plan that an LLM wrote, one that it has not created: to read it waives nothing, as the LLM can write that step
    too. An approved call may, and so may any call if the plan owns the file, as it really is: where links lead.
    """
    call, place = change.context.call, change.place
    if place.status is None or call.approved or call.may_replace(place.path):
        return
    if not is_owned(call.owns, "/".join(place.real_parts)):
        if call.drafted:
            raise ToolError(
                "APPROVAL_REQUIRED",
                f"{shown(place.path)} exists and this run has not created it: an LLM wrote this plan, so a person must"
                " approve overwriting it, also if it has been read",
            )
        raise ToolError(
            "APPROVAL_REQUIRED",
            f"{shown(place.path)} exists and this run has neither created nor read it;"
            " read it with read_file first, name it in the plan's `owns`, or have a person approve overwriting it",
        )


def _check_deletable(change: Change) -> None:
    place = change.place
    if place.is_directory:
        raise ToolError(
            "NOT_REGULAR",
            f"{shown(place.path)} is a directory; use run_command with rmdir, or with rm -r to delete its contents too",
        )
    change.check_exists()
    if place.status is None:
        raise not_found(place.path)
    place.check_writing(change.context.call)
    change.check()


def _edit(change: Change, old: str, new: str) -> Edit:
    """The edit, applied to the file's present content."""
    place, call = change.place, change.context.call
    if old == "":
        if place.status is None:
            change.check()
            return Edit(place.path, "", 0, "", new)
        raise ToolError(
            "EXISTS", f"{shown(place.path)} exists, and an empty oldText creates a new file; pass the text to replace"
        )
    change.check()
    change.check_exists()
    seen = call.stamps.get(place.path)
    if place.status is not None and change.context.effects.strict and (seen is None or seen.state == "deleted"):
        raise ToolError(
            "NOT_READ", f"this run has not read {shown(place.path)}; read it with read_file first (PLANS_EDITS=strict)"
        )
    text = text_of(place, read_bytes(place) if change.data is None else change.data)
    check_replaceable(place)
    return find_edit(place.path, text, old, new)
