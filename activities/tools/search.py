"""The tools that look for files: list_directory and find_files. They read names only, and never follow a link to a
directory.
"""

from __future__ import annotations

import fnmatch
import os
import stat
from collections.abc import Iterator
from typing import Literal, TypedDict

from activities.tools.tool import Tool, ToolContext, tool
from activities.workspace.paths import parts_of, shown
from plans.errors import ToolError

MAX_ENTRIES = 10_000
"""Names a value may hold."""


class Entry(TypedDict):
    """One name in a directory."""

    name: str
    type: Literal["file", "directory", "link", "other"]
    size: int


@tool(effect="pure")
def list_directory(context: ToolContext, path: str = ".") -> list[Entry]:
    """List a directory.

    Args:
        path: The directory, relative to the workspace; the workspace itself if not given.

    Returns:
        [{name, type, size}], sorted by name; type is file, directory, link or other; size in bytes, 0 for a directory.
    """
    with context.workspace.directory(path) as directory:
        found = [_entry(name, status) for name, status in _names(directory)]
    if len(found) > MAX_ENTRIES:
        raise _too_many(path)
    return sorted(found, key=lambda entry: entry["name"])


@tool(effect="pure")
def find_files(pattern: str, context: ToolContext, path: str = ".") -> list[str]:
    """Find files by a pattern such as `src/**/*.py`: `*` and `?` stay within a name, `**` stands for any directories.

    Names that begin with a dot are found only where the pattern has the dot.

    Args:
        pattern: The pattern, relative to `path`.
        path: The directory to search; the workspace if not given.

    Returns:
        [path], relative to the workspace, sorted.
    """
    patterns = parts_of(pattern, ())
    top = context.workspace.relative(path)
    found: list[str] = []
    pending = [(top, _open_ended({0}, patterns))]
    while pending:
        folder, alive = pending.pop()
        for name, status in _listing(context, folder, required=folder == top):
            reached = _step(name, alive, patterns)
            place = name if folder == "." else f"{folder}/{name}"
            if stat.S_ISDIR(status.st_mode) and reached:
                pending.append((place, reached))
            elif len(patterns) in reached and stat.S_ISREG(status.st_mode):
                found.append(place)
        if len(found) > MAX_ENTRIES:
            raise _too_many(pattern)
    return sorted(found)


SEARCH_TOOLS: tuple[Tool, ...] = (list_directory, find_files)


def _step(name: str, alive: set[int], patterns: tuple[str, ...]) -> set[int]:
    """Where in the pattern one may stand after `name`, having stood at `alive`; empty: this way is of no use."""
    reached: set[int] = set()
    for at in alive:
        if at == len(patterns) or (name.startswith(".") and not patterns[at].startswith(".")):
            continue
        if patterns[at] == "**":
            reached.add(at)
            if at == len(patterns) - 1:
                reached.add(at + 1)
        elif fnmatch.fnmatchcase(name, patterns[at]):
            reached.add(at + 1)
    return _open_ended(reached, patterns)


def _open_ended(alive: set[int], patterns: tuple[str, ...]) -> set[int]:
    """The same places, and those beyond a `**`, which may stand for no directory at all."""
    reached = set(alive)
    for at in sorted(alive):
        while at < len(patterns) - 1 and patterns[at] == "**":
            at += 1
            reached.add(at)
    return reached


def _listing(context: ToolContext, folder: str, *, required: bool) -> Iterator[tuple[str, os.stat_result]]:
    if context.cancelled:
        return
    try:
        with context.workspace.directory(folder) as directory:
            yield from list(_names(directory))
    except (ToolError, OSError):
        if required:
            raise  # a directory below that vanished or may not be read has no files to find


def _names(directory: int) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(directory) as entries:
        for entry in entries:
            try:
                yield os.fsencode(entry.name).decode("utf-8", "replace"), entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue


def _entry(name: str, status: os.stat_result) -> Entry:
    if stat.S_ISDIR(status.st_mode):
        return {"name": name, "type": "directory", "size": 0}
    kind: Literal["file", "link", "other"] = "file" if stat.S_ISREG(status.st_mode) else "other"
    if stat.S_ISLNK(status.st_mode):
        kind = "link"
    return {"name": name, "type": kind, "size": status.st_size}


def _too_many(what: str) -> ToolError:
    return ToolError("OUTPUT_LIMIT", f"{shown(what)} has more than {MAX_ENTRIES} files; use a narrower pattern or path")
