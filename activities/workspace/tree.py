"""Lists a workspace's files for the planning prompt in a fixed order: breadth first, then by name.

Hidden files, links and files ignored by .gitignore are omitted. The walk stops at MAX_ENTRIES; the tree is then marked
as incomplete.
"""

from __future__ import annotations

import fnmatch
import os
import stat
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import nsmallest

from pathspec import GitIgnoreSpec

from plansurvive.activities.workspace.file_names import native, visible
from plansurvive.activities.workspace.workspace import Workspace
from plansurvive.plans.errors import ToolError

MAX_ENTRIES = 2_000
MAX_IGNORE_BYTES = 65_536
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NOT_ENTERED = ("node_modules", "__pycache__")
"""Directories of generated files; listed but not entered."""
_SECRET_NAMES = (
    *(".env", ".env.*", "*.env", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk"),
    *("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", ".netrc", ".npmrc", ".pypirc", ".pgpass", ".htpasswd"),
    *("credentials*", "secrets.*", "secret.*", "*service-account*.json", "*.tfstate", "*.tfvars", "*.kubeconfig"),
)


@dataclass(frozen=True)
class Entry:
    """A file or directory."""

    path: str
    is_directory: bool = False
    size: int = 0

    @property
    def is_entered(self) -> bool:
        """Whether its contents belong to the tree."""
        return self.is_directory and self.path.rpartition("/")[2] not in _NOT_ENTERED

    @property
    def is_secret(self) -> bool:
        """Whether its name suggests that it holds keys or passwords."""
        return may_hold_secrets(self.path.rpartition("/")[2])

    def head(self, workspace: Workspace, length: int) -> bytes:
        """Its first bytes; empty if it is gone or not a regular file any more."""
        folder, _, name = self.path.rpartition("/")
        try:
            with workspace.directory(folder or ".") as directory:
                return _read(native(name), directory, length)
        except (ToolError, OSError):
            return b""


@dataclass
class Tree:
    """The entries of a workspace; `complete` is False if there were more than MAX_ENTRIES."""

    entries: list[Entry] = field(default_factory=list)
    complete: bool = True


@dataclass(frozen=True)
class _Folder:
    path: str
    """Empty for the workspace."""
    rules: tuple[tuple[str, GitIgnoreSpec], ...] = ()
    """The .gitignore files that apply to it, each with its folder, nearest first."""

    def inside(self, name: str) -> str:
        return f"{self.path}/{name}" if self.path else name

    def ignores(self, path: str) -> bool:
        for folder, spec in self.rules:
            verdict = spec.check_file(path[len(folder) + 1 :] if folder else path).include
            if verdict is not None:
                return verdict
        return False


def walk(workspace: Workspace) -> Tree:
    """List the workspace. Raises ToolError NOT_FOUND if it does not exist."""
    tree = Tree()
    pending = deque([_Folder("")])
    while pending and tree.complete:
        folder = pending.popleft()
        try:
            with workspace.directory(folder.path or ".") as directory:
                folder = _with_rules(folder, directory)
                entries = list(_entries(folder, directory, MAX_ENTRIES + 1))
        except (ToolError, OSError):
            if not folder.path:
                raise
            continue
        room = MAX_ENTRIES - len(tree.entries)
        tree.entries += entries[:room]
        tree.complete = len(entries) <= room
        pending.extend(_Folder(entry.path, folder.rules) for entry in entries if entry.is_entered)
    return tree


def _entries(folder: _Folder, directory: int, most: int) -> Iterator[Entry]:
    """A folder's files and directories that are listed, by name."""
    with os.scandir(directory) as found:
        names = nsmallest(most, (entry.name for entry in found if _is_named(entry.name)))
    for name in names:
        try:
            status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        except OSError:
            continue
        is_directory = stat.S_ISDIR(status.st_mode)
        path = folder.inside(visible(name))
        if (is_directory or stat.S_ISREG(status.st_mode)) and not folder.ignores(path + "/" * is_directory):
            yield Entry(path, is_directory, 0 if is_directory else status.st_size)


def may_hold_secrets(name: str) -> bool:
    """Whether the name of a file suggests that it holds keys or passwords, so that nobody shows what is in it."""
    return any(fnmatch.fnmatchcase(name.lower(), pattern) for pattern in _SECRET_NAMES)


def _is_named(name: str) -> bool:
    """False for hidden names, except secrets, which the LLM should know of."""
    return not name.startswith(".") or may_hold_secrets(name)


def _with_rules(folder: _Folder, directory: int) -> _Folder:
    """The folder with its own .gitignore, if it has one."""
    try:
        text = _read(".gitignore", directory, MAX_IGNORE_BYTES).decode("utf-8", "replace")
    except OSError:
        return folder
    lines = [line for line in text.splitlines() if line.strip()]
    spec = GitIgnoreSpec.from_lines(line for line in lines if _is_pattern(line))
    return _Folder(folder.path, ((folder.path, spec), *folder.rules))


def _is_pattern(line: str) -> bool:
    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False  # git ignores a pattern it cannot parse, and so do we
    return True


def _read(name: str, directory: int, length: int) -> bytes:
    descriptor = os.open(name, _OPEN, dir_fd=directory)
    with os.fdopen(descriptor, "rb") as file:
        return file.read(length) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
