"""What changed on this machine while the stack ran, other than in the workspace and the state directory.

Two looks, as neither sees everything on a machine where others work meanwhile: the directories of the system, of the
project and one made for this are compared entry by entry; and whatever belongs to a user of the containers is looked
for on all local file systems. The engine's own data is left aside.
"""

from __future__ import annotations

import os
import pwd
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.compose.stack import OWNER, ROOT, Stack

SYSTEM = tuple(Path(name) for name in ("/etc", "/usr", "/opt", "/boot", "/srv", "/home"))
USERS = (OWNER, 70, 1000, 5000)
"""Users of the containers."""
OURS = (".venv", ".git", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", "build")
"""What tests and their tools change in the project."""
Entry = tuple[int, int, int, int, int, int]


@dataclass(frozen=True)
class Audit:
    """The machine before the stack was brought up."""

    stack: Stack
    outside: Path
    """A directory beside the workspace, for attempts to get out of it."""
    began: float
    before: dict[str, Entry]

    @classmethod
    def begin(cls, stack: Stack) -> Self:
        """Note how the machine is."""
        outside = stack.folder / "outside"
        outside.mkdir()
        (outside / "theirs.txt").write_text("not to be changed\n")
        outside.chmod(0o777)  # so that nothing but the container keeps a plan from writing here
        return cls(stack, outside, time.time(), dict(_entries(outside)))

    def changes(self) -> list[str]:
        """What is new, different or gone outside the workspace and the state directory."""
        after = dict(_entries(self.outside))
        touched = sorted(path for path in self.before.keys() | after if self.before.get(path) != after.get(path))
        return touched + sorted(self._by_containers())

    def _by_containers(self) -> Iterator[str]:
        """Files of the containers' users, other than people of this machine, changed since."""
        users = {user for user in USERS if not _is_person(user)}
        aside = {self.stack.engine.root, self.stack.workspace, self.stack.folder / "state", self.outside}
        for path, status in _walk("/", {str(path) for path in aside}):
            if status.st_uid in users and status.st_ctime >= self.began:
                yield path


def _entries(outside: Path) -> Iterator[tuple[str, Entry]]:
    for folder in (*SYSTEM, ROOT, outside):
        for path, status in _walk(str(folder), {str(ROOT / name) for name in OURS}):
            kept = status.st_mode, status.st_uid, status.st_gid
            # A folder's own size and times say only that an entry came or went, `__pycache__` too; each is looked at.
            own = (
                (0, 0, 0) if stat.S_ISDIR(status.st_mode) else (status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            )
            yield path, (*kept, *own)


def _walk(folder: str, aside: set[str]) -> Iterator[tuple[str, os.stat_result]]:
    """Everything below a folder, on its file system, but what is aside and what Python keeps beside its sources."""
    waiting, device = [folder], None
    while waiting:
        with (
            suppress(OSError),
            os.scandir(waiting.pop()) as entries,
        ):  # others work here: it is gone, or cannot be named
            for entry in entries:
                with suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    device = device or Path(folder).stat().st_dev
                    if entry.path in aside or entry.name == "__pycache__" or status.st_dev != device:
                        continue
                    yield entry.path, status
                    if stat.S_ISDIR(status.st_mode):
                        waiting.append(entry.path)


def _is_person(user: int) -> bool:
    try:
        pwd.getpwuid(user)
    except KeyError:
        return False
    return True
