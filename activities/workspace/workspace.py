"""The workspace: the directory that tools work in. Resolves paths so that no access can leave it.

Every access starts at an open directory and descends one name at a time with O_NOFOLLOW, so neither `..`, a link nor a
directory swapped during the call leads outside. A link is read, and its target walked in the same way while it stays
inside. The result is a `DirectoryEntry`: an open parent directory and a name in it, immune to later renames above it.
Recorded and displayed paths are the requested ones; the rules for protected files also see the real path.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from plansurvive.activities.workspace.file_names import native, visible
from plansurvive.activities.workspace.git_folders import led_to
from plansurvive.activities.workspace.identity import check_open
from plansurvive.activities.workspace.paths import check_new_name, file_parts_of, outside, parts_of, shown
from plansurvive.plans.activity_io import Call
from plansurvive.plans.directory import DirectoryIdentity
from plansurvive.plans.errors import ToolError
from plansurvive.plans.files.name_patterns import DEFAULT, ProtectedNames, is_exposed

MAX_LINKS = 40
_OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass
class DirectoryEntry:
    """A name in an open directory of the workspace; it exists if `status` is not None."""

    path: str
    """The requested path, relative to the workspace."""
    directory: int
    """Open descriptor of the (future) parent directory."""
    folders: tuple[str, ...]
    """Real path components from the workspace down to `directory`; names of the operating system."""
    name: str
    """The last name; `.` when the place is `directory` itself. A name of the operating system, as in `missing`."""
    status: os.stat_result | None
    missing: tuple[str, ...] = ()
    """Directories between `directory` and the name that do not exist yet."""
    root: str = ""
    """Real path of the workspace."""
    names: ProtectedNames = DEFAULT

    @property
    def real_parts(self) -> tuple[str, ...]:
        """Path components from the workspace down, links resolved; texts, as in `path`."""
        names = (*self.folders, *self.missing, *([] if self.name == "." else [self.name]))
        return tuple(map(visible, names))

    @property
    def linked(self) -> bool:
        """Whether a link leads here."""
        return "/".join(self.real_parts) != self.path

    @property
    def is_regular(self) -> bool:
        """Whether it is a regular file."""
        return self.status is not None and stat.S_ISREG(self.status.st_mode)

    @property
    def is_directory(self) -> bool:
        """Whether it is a directory."""
        return self.status is not None and stat.S_ISDIR(self.status.st_mode)

    def check_writing(self, call: Call, *, is_folder: bool = False) -> None:
        """Raise ToolError unless a file, or with `is_folder` a directory, may be created or changed here.

        PATH_INVALID for a misleading new name, APPROVAL_REQUIRED for a protected one: as requested, or as it really is.
        """
        if self.status is None:
            for name in (*self.missing, self.name):
                check_new_name(name)
        if call.approved:
            return
        root = [name for name in self.root.split("/") if name]
        for parts in (self.path.split("/"), self.real_parts):
            if found := self.names.reason(parts, root, is_folder=is_folder):
                raise ToolError(
                    "APPROVAL_REQUIRED",
                    f"PATH_PROTECTED: {shown(self.path)} ({found.title}) may {found.why};"
                    " a person must approve writing to it",
                )
        if not is_folder and led_to(self.root, "/".join((*self.folders, *self.missing, self.name))):
            raise ToolError(
                "APPROVAL_REQUIRED",
                f"PATH_PROTECTED: {shown(self.path)} is a hook or configuration file of a git repository: it"
                " may run code with the next git command; a person must approve writing to it",
            )
        if call.strict and self.status is None and is_exposed(self.real_parts, at_top=not self.folders):
            raise ToolError(
                "APPROVAL_REQUIRED",
                f"NAME_NEW: {shown(self.path)} is new at the top of the workspace, or has a name with a dot in front:"
                " programs may look for it there. With strict approvals a person must approve making it",
            )

    def look_again(self) -> None:
        """Read `status` again, for example after waiting for a lock."""
        if not self.missing:
            self.status = _status(self.name, self.directory)

    def make_folders(self) -> None:
        """Create the missing directories; `directory` is the innermost of them afterwards."""
        while self.missing:
            name, *rest = self.missing
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=self.directory)
                os.fsync(self.directory)
            inner = _enter(self.directory, name, self.path)
            os.close(self.directory)
            self.directory, self.folders, self.missing = inner, (*self.folders, name), tuple(rest)


class Workspace:
    """A directory, and access to the files below it."""

    def __init__(
        self, root: str, names: ProtectedNames = DEFAULT, closed: frozenset[tuple[int, int]] = frozenset(),
        directory: DirectoryIdentity | None = None, plan_id: str = "",
    ) -> None:  # fmt: skip
        """`closed`: device and inode of directories inside that cannot be entered: the worker's own data.

        `directory`: the only one that it may be, of the plan `plan_id`.
        """
        self._path, self._names, self._closed = root, names, closed
        self._directory, self._plan_id = directory, plan_id

    @cached_property
    def _given(self) -> Path:
        return Path(self._path)

    @cached_property
    def root(self) -> str:
        """Its real path. Resolved on first use: many tools touch no file."""
        return str(self._given.resolve())

    @cached_property
    def _roots(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((str(self._given.absolute()), self.root)))

    def relative(self, path: str) -> str:
        """The path relative to the workspace, `.` for itself. Raises ToolError PATH_OUTSIDE or PATH_INVALID."""
        return "/".join(parts_of(path, self._roots)) or "."

    @contextmanager
    def file(self, path: str, *, follow: bool = True) -> Iterator[DirectoryEntry]:
        """Open the place of a file, existing or not. With `follow` False, a link is not resolved to its target.

        Raises ToolError PATH_OUTSIDE, PATH_INVALID, NOT_FOUND or NOT_REGULAR.
        """
        with self._place(path, file_parts_of(path, self._roots), follow) as place:
            yield place

    def recorded(self, path: str) -> AbstractContextManager[DirectoryEntry]:
        """As `file`, for a path from a record, which is never meant as a place outside: `~/x` is a file in `~`."""
        return self.file(f"./{path}", follow=False)

    @contextmanager
    def directory(self, path: str) -> Iterator[int]:
        """An open descriptor of a directory. Raises ToolError NOT_FOUND or NOT_REGULAR, and as `file` does."""
        with self._place(path, parts_of(path, self._roots), follow=True) as place:
            if place.status is None:
                raise not_found(path)
            descriptor = _enter(place.directory, place.name, path)
            try:
                yield descriptor
            finally:
                os.close(descriptor)

    @contextmanager
    def _place(self, path: str, parts: tuple[str, ...], follow: bool) -> Iterator[DirectoryEntry]:
        walk = _Walk(self._open_root(), self._roots, path, self._names, self._closed)
        try:
            place = walk.to(parts, follow)
        except BaseException:
            walk.close()
            raise
        try:
            yield place
        finally:
            os.close(place.directory)

    def _open_root(self) -> int:
        try:
            descriptor = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise ToolError(
                "NOT_FOUND", f"the workspace {shown(self.root)} cannot be opened ({error.strerror}); create it"
            ) from None
        if _path_of(descriptor) not in (self.root, None):
            os.close(descriptor)
            raise ToolError("WORKSPACE_REFUSED", f"a directory above {shown(self.root)} is a link now; put it back")
        try:
            check_open(descriptor, self._directory, self._plan_id)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor


@dataclass
class _Walk:
    """A descent from the workspace; holds every directory on the way open, so that `..` in a link is exact."""

    root: int
    roots: tuple[str, ...]
    path: str
    names: ProtectedNames
    closed: frozenset[tuple[int, int]]
    folders: list[tuple[str, int]] = field(default_factory=list)
    links: int = 0

    @property
    def here(self) -> int:
        return self.folders[-1][1] if self.folders else self.root

    def to(self, parts: tuple[str, ...], follow: bool) -> DirectoryEntry:
        """Walk to a path; returns its place and closes every descriptor except the place's own."""
        pending = deque(map(native, parts))
        while pending:
            name = pending.popleft()
            if name == "..":
                self._up()
                continue
            status = _status(name, self.here)
            if status is not None and (status.st_dev, status.st_ino) in self.closed:
                raise ToolError(
                    "PATH_OUTSIDE", f"{shown(self.path)} is or leads into the worker's own data; no step uses it"
                )
            if status is not None and stat.S_ISLNK(status.st_mode) and (pending or follow):
                self._follow(name, pending)
            elif status is None or not pending:
                return self._end(name, status, pending)
            else:
                self.folders.append((name, _enter(self.here, name, self.path)))
        return self._end(".", os.fstat(self.here), pending)

    def close(self) -> None:
        """Close all descriptors."""
        for _, descriptor in self.folders:
            os.close(descriptor)
        os.close(self.root)

    def _up(self) -> None:
        if not self.folders:
            raise outside(self.path)
        os.close(self.folders.pop()[1])

    def _follow(self, name: str, pending: deque[str]) -> None:
        self.links += 1
        if self.links > MAX_LINKS:
            raise ToolError(
                "PATH_OUTSIDE",
                f"{shown(self.path)} goes through more than {MAX_LINKS} links; use the path without links",
            )
        try:
            target = os.readlink(name, dir_fd=self.here)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            pending.appendleft(name)  # not a link any more: examine the name again
            return
        names = [part for part in target.split("/") if part not in ("", ".")]
        if target.startswith("/"):
            if ".." in names:
                raise outside(self.path)
            names = [native(part) for part in parts_of(visible(target), self.roots)]
            while self.folders:
                self._up()
        pending.extendleft(reversed(names))

    def _end(self, name: str, status: os.stat_result | None, pending: deque[str]) -> DirectoryEntry:
        names = [name, *pending]
        if ".." in names:
            raise not_found(self.path)
        here = os.dup(self.here)
        folders = tuple(folder for folder, _ in self.folders)
        self.close()
        requested = "/".join(parts_of(self.path, self.roots)) or "."
        return DirectoryEntry(
            requested, here, folders, names[-1], status, tuple(names[:-1]), self.roots[-1], self.names
        )


def not_found(path: str) -> ToolError:
    """The error for a missing file or directory."""
    text = f"{shown(path)} does not exist in the workspace; check the path: list_directory lists what is there"
    return ToolError("NOT_FOUND", text)


def _path_of(descriptor: int) -> str | None:
    """The real path of an open directory; None where the system does not say."""
    with suppress(OSError):
        return os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115
    return None


def _status(name: str, directory: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _enter(directory: int, name: str, path: str) -> int:
    try:
        return os.open(name, _OPEN_DIRECTORY, dir_fd=directory)
    except NotADirectoryError:
        raise ToolError("NOT_REGULAR", f"{shown(visible(name))} in {shown(path)} is not a directory") from None
