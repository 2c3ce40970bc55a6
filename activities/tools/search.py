"""The tools list_directory and find_files. They read names and metadata only, and follow no links to directories."""

from __future__ import annotations

import fnmatch
import os
import stat
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Literal, TypedDict

from plansurvive.activities.tools.tool import Tool, ToolContext, tool
from plansurvive.activities.workspace.file_names import visible
from plansurvive.activities.workspace.paths import parts_of, shown
from plansurvive.activities.workspace.workspace import Workspace
from plansurvive.plans.errors import ToolError

MAX_ENTRIES = 10_000
"""Maximum number of entries in a result."""
MAX_PARTS = 100
"""Maximum number of names in a pattern: each is compared with each name below the directory."""


class Entry(TypedDict):
    """One name in a directory."""

    name: str
    type: Literal["file", "directory", "link", "other"]
    size: int


@tool(effect="pure", quick=True, outside=False)
def list_directory(context: ToolContext, path: str = ".") -> list[Entry]:
    """List the entries of a directory.

    Args:
        path: Path of the directory, relative to the workspace; default: the workspace itself.

    Returns:
        [{name, type, size}], sorted by name; type is file, directory, link or other; size in bytes, 0 for a directory.
    """
    with context.workspace.directory(path) as directory:
        found = [_entry(name, status) for name, status in _names(directory)]
    if len(found) > MAX_ENTRIES:
        raise _too_many(path)
    return sorted(found, key=lambda entry: entry["name"])


@tool(effect="pure", quick=True, outside=False)
def find_files(pattern: str, context: ToolContext, path: str = ".") -> list[str]:
    """Find files that match a glob pattern such as `src/**/*.py`.

    `*` and `?` match within a name, `**` matches any number of directories. A name that begins with a dot matches only
    if the pattern has the dot too.

    Args:
        pattern: The glob pattern, relative to `path`.
        path: Path of the directory to search, relative to the workspace; default: the workspace itself.

    Returns:
        [path], relative to the workspace, sorted.
    """
    return find(context.workspace, pattern, path, lambda: context.cancelled)


SEARCH_TOOLS: tuple[Tool, ...] = (list_directory, find_files)


def find(
    workspace: Workspace, pattern: str, path: str = ".", stopped: Callable[[], bool] = lambda: False
) -> list[str]:  # fmt: skip
    """The regular files below a directory that a pattern fits, sorted. Raises ToolError PATH_INVALID, OUTPUT_LIMIT."""
    patterns = _patterns(pattern)
    top = workspace.relative(path)
    found: list[str] = []
    pending = [(top, _open_ended({0}, patterns))]
    while pending and not stopped():
        folder, alive = pending.pop()
        for name, status in _listing(workspace, folder, required=folder == top):
            reached = _step(name, alive, patterns)
            place = name if folder == "." else f"{folder}/{name}"
            if stat.S_ISDIR(status.st_mode) and reached:
                pending.append((place, reached))
            elif len(patterns) in reached and stat.S_ISREG(status.st_mode):
                found.append(place)
        if len(found) > MAX_ENTRIES:
            raise _too_many(pattern)
    return sorted(found)


def _patterns(pattern: str) -> tuple[str, ...]:
    """The names of a pattern; several `**` in a row are one."""
    names = parts_of(pattern, ())
    found = tuple(name for before, name in pairwise(("", *names)) if name != "**" or before != "**")
    if len(found) > MAX_PARTS:
        raise ToolError("PATH_INVALID", f"{shown(pattern)} has more than {MAX_PARTS} names; use a shorter pattern")
    return found


def _step(name: str, alive: set[int], patterns: tuple[str, ...]) -> set[int]:
    """Advances the pattern positions `alive` by one path component; empty: nothing below `name` can match."""
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
    """The positions, plus those after a `**`, which also matches no directory at all."""
    reached = set(alive)
    for at in sorted(alive):
        while at < len(patterns) - 1 and patterns[at] == "**":
            at += 1
            reached.add(at)
    return reached


def _listing(workspace: Workspace, folder: str, *, required: bool) -> Iterator[tuple[str, os.stat_result]]:
    try:
        with workspace.directory(folder) as directory:
            yield from list(_names(directory))
    except (ToolError, OSError):
        if required:
            raise  # but a subdirectory that vanished or cannot be read is skipped


def _names(directory: int) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(directory) as entries:
        for entry in entries:
            try:
                yield visible(entry.name), entry.stat(follow_symlinks=False)
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
