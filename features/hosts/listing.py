"""Walks a plan's directory for a checkpoint: every file, directory and symbolic link, except what `.plansignore` names.

Each name is opened below its open parent and never through a link, so that a command that swaps a directory for a link
during the walk leads nowhere. Sockets, pipes and devices are left out. The order is that of the names: parents first.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from pathspec import GitIgnoreSpec

from plansurvive.activities.workspace.file_names import visible
from plansurvive.activities.workspace.paths import shown
from plansurvive.plans.errors import ToolError

IGNORED = ".plansignore"
"""In the plan's directory: patterns, as in .gitignore, of what a checkpoint leaves out."""
MAX_IGNORE_BYTES = 65_536
MAX_DEPTH = 100
MAX_FILES = 100_000
TOO_LARGE, FAILED = "CHECKPOINT_TOO_LARGE", "CHECKPOINT_FAILED"
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True)
class Found:
    """A name in the directory. Paths and targets are as the operating system has them (`os.fsdecode`)."""

    path: str
    kind: Literal["file", "directory", "link"]
    status: os.stat_result
    parent: int
    """Open descriptor of its directory, during the walk only."""
    target: str = ""
    """Of a link."""

    @property
    def signature(self) -> list[int]:
        """Tells whether a file may have changed since it was read."""
        found = self.status
        return [found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]

    def open(self) -> int:
        """Open the file. Raises FileNotFoundError if it is gone, or not a regular file any more.

        Raises ToolError CHECKPOINT_FAILED if it may not be read.
        """
        try:
            descriptor = os.open(self.path.rpartition("/")[2], _FILE, dir_fd=self.parent)
        except PermissionError as error:
            raise _unreadable(self.path, error) from None
        except OSError as error:
            raise FileNotFoundError(self.path) from error
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise FileNotFoundError(self.path)
        return descriptor


def walk(root: str) -> Iterator[Found]:
    """All names below a directory. Raises ToolError CHECKPOINT_TOO_LARGE for too many or too deep ones."""
    descriptor = os.open(root, _DIRECTORY)
    try:
        for number, found in enumerate(_below(descriptor, "", _ignored(descriptor), 0)):
            if number >= MAX_FILES:
                raise too_large(f"more than {MAX_FILES:,} files")
            yield found
    finally:
        os.close(descriptor)


def too_large(what: str) -> ToolError:
    """The error for a directory that no checkpoint takes."""
    return ToolError(
        TOO_LARGE,
        f"the plan's directory has {what}, too much for a checkpoint; name what can be made again in {IGNORED}"
        " (patterns as in .gitignore), or raise PLANS_CHECKPOINT_MB",
    )


def _below(directory: int, prefix: str, ignored: GitIgnoreSpec | None, depth: int) -> Iterator[Found]:
    if depth > MAX_DEPTH:
        raise too_large(f"directories more than {MAX_DEPTH} deep")
    for name in sorted(os.listdir(directory)):
        path = prefix + name
        try:
            status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        except FileNotFoundError:
            continue
        is_directory = stat.S_ISDIR(status.st_mode)
        if ignored is not None and ignored.match_file(visible(path) + "/" * is_directory):
            continue
        if stat.S_ISREG(status.st_mode):
            yield Found(path, "file", status, directory)
        elif stat.S_ISLNK(status.st_mode):
            try:
                yield Found(path, "link", status, directory, os.readlink(name, dir_fd=directory))
            except OSError:
                continue
        elif is_directory:
            yield Found(path, "directory", status, directory)
            yield from _inside(directory, name, path, ignored, depth)


def _inside(directory: int, name: str, path: str, ignored: GitIgnoreSpec | None, depth: int) -> Iterator[Found]:
    try:
        inner = os.open(name, _DIRECTORY, dir_fd=directory)
    except (FileNotFoundError, NotADirectoryError):  # removed, or swapped for a link
        return
    except PermissionError as error:
        raise _unreadable(path, error) from None
    try:
        yield from _below(inner, f"{path}/", ignored, depth + 1)
    finally:
        os.close(inner)


def _ignored(root: int) -> GitIgnoreSpec | None:
    try:
        descriptor = os.open(IGNORED, _FILE, dir_fd=root)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        text = file.read(MAX_IGNORE_BYTES).decode("utf-8", "replace") if _is_regular(descriptor) else ""
    try:
        return GitIgnoreSpec.from_lines(line for line in text.splitlines() if line.strip())
    except ValueError as error:
        raise ToolError(FAILED, f"{IGNORED} cannot be read: {error}") from None


def _unreadable(path: str, error: OSError) -> ToolError:
    text = f"{shown(visible(path))} cannot be read for a checkpoint: {error.strerror}; change its mode, or name it in"
    return ToolError(FAILED, f"{text} {IGNORED}")


def _is_regular(descriptor: int) -> bool:
    return stat.S_ISREG(os.fstat(descriptor).st_mode)
