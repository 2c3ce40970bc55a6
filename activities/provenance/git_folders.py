"""The files of git's own directories that can make git run a program: hooks, configurations, and pointers to others.

Submodules keep theirs below `.git/modules`, linked worktrees below `.git/worktrees`. Where `.git` is a link, or a file
that names another directory (`git init --separate-git-dir`), they are in that directory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_GUARDED = ("hooks", "config", "config.worktree", "info/attributes", "commondir", "gitdir")
_NESTED = ("modules", "worktrees")
MAX_FOLDERS = 200
"""Directories looked at below `modules` or `worktrees`; where there are more, all of it is guarded."""
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def guarded_in_git(parent: int) -> list[str]:
    """Paths in the `.git` of an open directory, whether or not they exist, relative to `.git`. Follows no links."""
    found = list(_GUARDED)
    with suppress(OSError):
        top = os.open(".git", _OPEN, dir_fd=parent)
        try:
            for nested in _NESTED:
                found += _guarded_below(top, nested)
        finally:
            os.close(top)
    return found


def guarded_elsewhere(parent: int, path: str) -> list[str]:
    """The same where `.git` in an open directory leads elsewhere in the workspace; paths relative to the workspace.

    `path` is that of the open directory, relative to the workspace, with a `/` at its end unless it is empty. What lies
    outside is out of a command's reach.
    """
    with suppress(OSError, ValueError):
        here = Path(f"/proc/self/fd/{parent}").readlink()
        led = os.path.relpath(here / _leads_to(parent), here)
        target = os.path.normpath(path + led)
        if target.split("/")[0] not in ("", ".", "..", ".git"):
            found = [*_GUARDED]
            top = os.open(led, _OPEN, dir_fd=parent)
            try:
                for nested in _NESTED:
                    found += _guarded_below(top, nested)
            finally:
                os.close(top)
            return [f"{target}/{each}" for each in found]
    return []


def _leads_to(parent: int) -> str:
    """Where the link or file `.git` leads. Raises OSError, ValueError."""
    with suppress(OSError):
        return os.readlink(".git", dir_fd=parent)
    file = os.open(".git", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
    with os.fdopen(file, "rb") as opened:
        word, _, where = opened.read(5_000).partition(b":")
    if word != b"gitdir":
        raise ValueError("no pointer to a directory")
    return os.fsdecode(where.strip())


def _guarded_below(top: int, nested: str) -> list[str]:
    found: list[str] = []
    pending, seen = [nested], 0
    while pending:
        folder = pending.pop()
        seen += 1
        if seen > MAX_FOLDERS:
            return [nested]
        names = list(_folders_and_files(top, folder))
        if folder != nested and ("HEAD", False) in names:
            found += [f"{folder}/{each}" for each in _GUARDED]
            pending += [f"{folder}/{name}" for name, is_folder in names if is_folder and name in _NESTED]
        else:
            pending += [f"{folder}/{name}" for name, is_folder in names if is_folder]
    return found


def _folders_and_files(top: int, folder: str) -> Iterator[tuple[str, bool]]:
    with suppress(OSError):
        opened = os.open(folder, _OPEN, dir_fd=top)
        try:
            with os.scandir(opened) as entries:
                for entry in entries:
                    yield entry.name, entry.is_dir(follow_symlinks=False)
        finally:
            os.close(opened)
