"""A metadata snapshot of a workspace. Diff two snapshots to find what changed.

Opens directories only, never files. Excluded, and so never reported: version control (`.git` and the like), caches and
installed dependencies (`node_modules`, `__pycache__`, `.venv`, directories with a CACHEDIR.TAG), our own temporary
files, and the worker's state directory. Symbolic links are recorded, never followed. Beyond MAX_ENTRIES entries the
snapshot is marked incomplete.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import xxhash

from plansurvive.activities.workspace.file_names import native, visible
from plansurvive.activities.workspace.git_folders import is_bare, of_repository
from plansurvive.plans.files.name_patterns import DEFAULT, ProtectedNames

MAX_ENTRIES = 100_000
MAX_DEPTH = 200
VERSIONED = frozenset((".git", ".hg", ".svn", ".jj", ".bzr"))
SKIPPED = VERSIONED | frozenset((
    *("node_modules", "bower_components", "__pycache__", ".venv", "venv", ".tox"),
    *(".nox", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", ".eggs", ".gradle", ".terraform", ".cache"),
    ".direnv",
))  # fmt: skip
"""Names of directories that are not scanned."""
CACHE_MARK = "CACHEDIR.TAG"
FOLDER_SIZE = -1
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

Mark = tuple[int, int, int]
"""Version of a path: ctime in ns (which programs cannot set), size, inode. For a directory: 0, FOLDER_SIZE, inode."""


class Difference(NamedTuple):
    """The difference between two snapshots, as sorted paths."""

    created: list[str]
    changed: list[str]
    deleted: list[str]


@dataclass
class WorkspaceScan:
    """A snapshot: the mark of every path."""

    marks: dict[str, Mark] = field(default_factory=dict)
    protected: list[str] = field(default_factory=list)
    """Protected files and directories that exist, relative to the workspace."""
    complete: bool = True
    most: int = MAX_ENTRIES
    names: ProtectedNames = DEFAULT
    sockets: list[str] = field(default_factory=list)
    """Named Unix sockets, relative to the workspace: some are known to the kernel under other names, or not to us."""

    def difference(self, later: WorkspaceScan) -> Difference:
        """The difference to a later snapshot."""
        created = [path for path in later.marks if path not in self.marks]
        deleted = [path for path in self.marks if path not in later.marks]
        changed = [path for path, mark in later.marks.items() if self.marks.get(path, mark) != mark]
        return Difference(sorted(created), sorted(changed), sorted(deleted))


def look(root: str, skipped: str = "", most: int = MAX_ENTRIES, names: ProtectedNames = DEFAULT) -> WorkspaceScan:
    """Scan a directory, except the absolute directory `skipped`. Raises OSError when `root` cannot be opened."""
    found = WorkspaceScan(most=most, names=names)
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _enter(descriptor, "", found, visible(os.path.relpath(skipped, root)) if skipped else "", 0)
    finally:
        os.close(descriptor)
    return found


class FirstLook(NamedTuple):
    """What there was before a call."""

    before: WorkspaceScan
    named: Mapping[str, Mark | None] = MappingProxyType({})
    """The marks of the paths that its text says it writes."""
    states: Mapping[str, str] = MappingProxyType({})
    """The states of the paths whose content is stored: what undo can restore."""


class Looks:
    """The first snapshots of calls in progress, and their traces, below a state directory: they survive a crash."""

    def __init__(self, state: Path) -> None:
        self._directory = state / "looks"

    def trace_file(self, key: str) -> Path:
        """The file for the trace of a call, which may not exist yet."""
        with suppress(OSError):  # the call is then not traced
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self._file(key).with_suffix(".trace").absolute()

    def save(self, key: str, first: FirstLook) -> None:
        """Keep what a call's first attempt found."""
        scan = first.before
        data = marshal.dumps((scan.marks, scan.protected, scan.complete, dict(first.named), dict(first.states)))
        with suppress(OSError):  # a later attempt then starts from a snapshot of its own
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file(key).write_bytes(xxhash.xxh3_128_digest(data) + data)

    def load(self, key: str) -> FirstLook | None:
        """What an earlier attempt has kept; verified by hash, because marshal must not read damaged data."""
        with suppress(OSError, ValueError, EOFError, TypeError):
            data = self._file(key).read_bytes()
            if xxhash.xxh3_128_digest(data[16:]) == data[:16]:
                marks, protected, complete, *more = marshal.loads(data[16:])  # noqa: S302
                return FirstLook(WorkspaceScan(marks, protected, complete), *more)  # 1.0.0 kept no more
        return None

    def taken(self, key: str) -> int:
        """When the snapshot was kept, in ns since the epoch; 0 if none is."""
        with suppress(OSError):
            return self._file(key).stat().st_mtime_ns
        return 0

    def forget(self, key: str) -> None:
        """Delete what is kept of a call."""
        self._file(key).unlink(missing_ok=True)
        for suffix in (".trace", ".call"):
            self._file(key).with_suffix(suffix).unlink(missing_ok=True)

    def _file(self, key: str) -> Path:
        return self._directory / hashlib.sha256(key.encode()).hexdigest()[:32]


def mark_of(status: os.stat_result) -> Mark:
    """The mark of a path from its lstat result."""
    is_folder = stat.S_ISDIR(status.st_mode)
    return (0, FOLDER_SIZE, status.st_ino) if is_folder else (status.st_ctime_ns, status.st_size, status.st_ino)


def _enter(directory: int, path: str, found: WorkspaceScan, skipped: str, depth: int, marking: bool = True) -> None:
    """Scan an open directory. Without `marking` only for what is protected: a command could make any directory look
    like a cache, or the workspace too large, so neither may end the protection of what lies below."""
    with os.scandir(directory) as entries:
        listed = list(entries)
    marking = marking and not (path and any(entry.name == CACHE_MARK for entry in listed))
    folders, may_be_strict = [], found.names.may_be_strict
    for entry in listed:
        name = entry.name
        try:
            if entry.is_dir(follow_symlinks=False):
                folders.append(name)
                continue
            status = entry.stat(follow_symlinks=False) if marking else None
        except OSError:
            continue
        if name.startswith(".plans-") and name.endswith(".tmp"):
            continue
        text = name
        if not entry.is_file(follow_symlinks=False) and not entry.is_symlink() and _is_socket(entry):
            found.sockets.append(path + visible(name))
        if may_be_strict(name):  # and whatever need not be its own text
            text = visible(name)
            if found.names.is_strict((*path.split("/"), name)):
                found.protected.append(path + text)
        if status is not None:
            found.marks[path + text] = (status.st_ctime_ns, status.st_size, status.st_ino)
    names = [entry.name for entry in listed]
    if ".git" in names or is_bare(names):
        found.protected += map(visible, of_repository(directory, native(path), names))
    found.complete = found.complete and len(found.marks) <= found.most and (depth <= MAX_DEPTH or not folders)
    for name in folders if depth <= MAX_DEPTH else ():
        _enter_folder(directory, path + visible(name), name, found, skipped, depth, marking and found.complete)


def _is_socket(entry: os.DirEntry[str]) -> bool:
    try:
        return stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode)
    except OSError:
        return False


def _enter_folder(
    directory: int, path: str, name: str, found: WorkspaceScan, skipped: str, depth: int, marking: bool
) -> None:
    if name in SKIPPED or path == skipped:
        return
    if any(map(found.names.may_be_strict, path.split("/"))) and found.names.is_strict(path.split("/")):
        found.protected.append(path)
    try:
        inner = os.open(name, _OPEN, dir_fd=directory)
    except OSError:
        return
    try:
        if marking:
            found.marks[path] = (0, FOLDER_SIZE, os.fstat(inner).st_ino)
        _enter(inner, f"{path}/", found, skipped, depth + 1, marking)
    finally:
        os.close(inner)
