"""The files of git's own directories that can make git run a program: hooks, configurations, and pointers to others.

Submodules keep theirs below `.git/modules`, linked worktrees below `.git/worktrees`. Where `.git` is a link, or a file
that names another directory (`git init --separate-git-dir`), they are in that directory.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

GUARDED = ("hooks", "config", "config.worktree", "info/attributes", "commondir", "gitdir")
CONTINUED = ("rebase-merge/git-rebase-todo", "sequencer/todo")
"""What git goes on with at the next `--continue`: it may name commands. Git itself writes these files."""
_NESTED = ("modules", "worktrees")
_OF_BARE = ("HEAD", "objects", "refs")
MAX_INCLUDED = 100
"""Configurations that are read for one git directory."""
MAX_CONFIGURATION = 1_000_000
"""Bytes read of each."""
_SETTING = re.compile(r"(?im)(?:^|\])[ \t]*(hookspath|path)[ \t]*=[ \t]*([^\r\n#;]+)")
MAX_FOLDERS = 200
"""Directories looked at below `modules` or `worktrees`; where there are more, all of it is guarded."""
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def resolved_by_git(folder: int, path: str, tree: str = "") -> list[str]:
    """What git reads by the word of an open git directory: hooks and configuration of its common directory, the folder
    of `core.hooksPath`, and included configurations, transitively. Paths relative to the workspace; what is outside
    is left out, since a command cannot reach it.

    `path`: that of the git directory in the workspace, with a `/` at its end unless it is empty; `tree`: of its files.
    """
    up = "../" * path.count("/")
    with suppress(OSError):
        root = os.path.normpath(Path("/proc/self/fd", str(folder)).readlink() / up)
        common = _joined(root, path, _text_in(folder, "commondir").strip()) or path
        found = [f"{common}{each}" for each in GUARDED] if common != path else []
        pending = [f"{place}{name}" for place in {path, common} for name in ("config", "config.worktree")]
        seen: set[str] = set()
        while pending and len(seen) < MAX_INCLUDED:
            file = pending.pop()
            seen.add(file)
            for key, value in _SETTING.findall(_text_in(folder, up + file)):
                is_include = key.lower() == "path"
                bases = (_parent(file, 1),) if is_include else (path, _parent(path, 2), _parent(common, 2), tree)
                named = [_joined(root, base, value.strip().strip('"')).rstrip("/") for base in bases]
                found += named
                pending += [each for each in named if is_include and each not in seen]
        return [each for each in dict.fromkeys(found) if each]
    return []


def _text_in(folder: int, path: str) -> str:
    """The text of a regular file, at most MAX_CONFIGURATION bytes; empty if there is none."""
    with suppress(OSError):
        opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        with os.fdopen(opened, "rb") as file:
            return os.fsdecode(file.read(MAX_CONFIGURATION))
    return ""


def _joined(root: str, base: str, value: str) -> str:
    """A path that git finds from `base`, relative to the workspace `root`, with `/` at its end; empty if outside."""
    if not value or value.startswith("~") or "\0" in value:
        return ""
    found = os.path.relpath(value, root) if value.startswith("/") else os.path.normpath(base + value)
    return "" if found.split("/")[0] in ("..", ".") else f"{found}/"


def _parent(path: str, levels: int) -> str:
    """The directory above: with one level, of the file `a/config` it is `a/`; with two, of `a/.git/` it is `a/`."""
    return "".join(f"{part}/" for part in path.split("/")[:-levels])


def led_to(root: str, path: str) -> bool:
    """Whether git reads a file by the word of a repository above it: of its hooks or configurations, or it is one of
    a repository without `.git` in its name. `path`: relative to the workspace `root`, as it is on disk.

    For file tools, before they write: what is in a `.git` is protected by its name.
    """
    parts, found = path.split("/"), list[str]()
    for depth in range(len(parts)):
        above = "".join(f"{part}/" for part in parts[:depth])
        with suppress(OSError):
            descriptor = os.open(f"{root}/{above}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                names = [name for name in (".git", *_OF_BARE) if _exists(name, descriptor)]
                found += [each for each in of_repository(descriptor, above, names) if each != f"{above}.git"]
            finally:
                os.close(descriptor)
    return any(path == each or path.startswith(f"{each}/") for each in found)


def of_repository(directory: int, path: str, names: Collection[str]) -> list[str]:
    """What git reads in the repository of an open directory, if it has one: paths relative to the workspace, existing
    or not. `path`: of the directory, with `/` at its end unless it is empty; `names`: of its entries.
    """
    if ".git" in names and stat.S_ISDIR(os.stat(".git", dir_fd=directory, follow_symlinks=False).st_mode):
        return [*(f"{path}.git/{each}" for each in guarded_in_git(directory)),
                *_resolved(directory, ".git", f"{path}.git/")]  # fmt: skip
    if ".git" in names:
        elsewhere = guarded_elsewhere(directory, path)
        found = [f"{path}.git", *elsewhere]
        for place in [each.removesuffix("hooks") for each in elsewhere[:1]]:  # the first is its `hooks`
            found += _resolved(directory, os.path.relpath(place, path or "."), place, path)
        return found
    if is_bare(names):
        return [f"{path}{each}" for each in GUARDED] + resolved_by_git(directory, path)
    return []


def _resolved(directory: int, name: str, path: str, tree: str = "") -> list[str]:
    """What git reads by the word of the git directory `name` in an open directory; `path`: as in `resolved_by_git`."""
    with suppress(OSError):
        inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
        try:
            return resolved_by_git(inner, path, tree)
        finally:
            os.close(inner)
    return []


def _exists(name: str, directory: int) -> bool:
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except OSError:
        return False
    return True


def is_bare(names: Collection[str]) -> bool:
    """Whether a directory with these entries is a repository itself, whatever it is called."""
    return set(_OF_BARE) <= set(names)


def guarded_in_git(parent: int) -> list[str]:
    """Paths in the `.git` of an open directory, whether or not they exist, relative to `.git`. Follows no links."""
    found = list(GUARDED)
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
            found = [*GUARDED]
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
            found += [f"{folder}/{each}" for each in GUARDED]
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
