"""Reads and writes the files of one folder without following links, in a directory that others may have written.

A cloned repository may hold anything: links to files elsewhere, pipes, files without end. Every access starts at the
open root and descends one name at a time with O_NOFOLLOW; only regular files of at most MAX_BYTES are read.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from plansurvive.features.templates.names import TemplateError
from plansurvive.plans.definition.parsing import MAX_BYTES
from plansurvive.plans.text.safe_text import line

MAX_ENTRIES = 1_000
"""Most entries of a folder that are listed."""
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True)
class Folder:
    """A directory below `root`, which is trusted as a place; what lies in it is not."""

    root: Path
    parts: tuple[str, ...]
    private: bool
    """Files of mode 0600 in directories of mode 0700; else what the umask leaves, as for other files of a project."""

    def below(self, name: str) -> Folder:
        """A folder in this one. `name` is one valid name, never a path."""
        return Folder(self.root, (*self.parts, name), self.private)

    @property
    def path(self) -> Path:
        """Where it is, for people."""
        return self.root.joinpath(*self.parts)

    @contextmanager
    def opened(self) -> Iterator[int | None]:
        """An open descriptor; None if it does not exist. Raises TemplateError for a link."""
        try:
            descriptor = self._descend(make=False)
        except FileNotFoundError:
            yield None
            return
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    @contextmanager
    def made(self) -> Iterator[int]:
        """An open descriptor; the folder is made if it does not exist. Raises TemplateError for a link."""
        descriptor = self._descend(make=True)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _descend(self, *, make: bool) -> int:
        held = [os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)]
        try:
            for name in self.parts:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(name, 0o700 if self.private else 0o777, dir_fd=held[-1])
                held.append(os.open(name, _DIRECTORY, dir_fd=held[-1]))
            return held.pop()
        except FileNotFoundError:
            raise
        except OSError as error:
            raise self._refused(error) from error
        finally:
            for descriptor in held:
                os.close(descriptor)

    def entries(self) -> list[str]:
        """The names in it that are directories, in order; at most MAX_ENTRIES."""
        with self.opened() as directory:
            if directory is None:
                return []
            with os.scandir(directory) as found:
                first = [each.name for each, _ in zip(found, range(MAX_ENTRIES), strict=False) if _is_folder(each)]
        return sorted(first)

    def read(self, name: str) -> bytes | None:
        """A file's content; None if there is none. Raises TemplateError unless it is a regular file of bounded size."""
        with self.opened() as directory:
            if directory is None:
                return None
            try:
                descriptor = os.open(name, _FILE, dir_fd=directory)
            except FileNotFoundError:
                return None
            except OSError as error:
                raise self._refused(error, name) from error
            with os.fdopen(descriptor, "rb") as file:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    raise TemplateError(f"{self._shown(name)} is not a regular file; remove it")
                content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise TemplateError(f"{self._shown(name)} is larger than {MAX_BYTES} bytes; split the plan")
        return content

    def write(self, name: str, content: bytes) -> None:
        """Replace a file atomically, synced to disk; the folder is made if it does not exist."""
        with self.made() as directory:
            temporary = f".{name}.{secrets.token_hex(8)}.tmp"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(temporary, flags, 0o600 if self.private else 0o666, dir_fd=directory)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(descriptor)
                os.replace(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
            except BaseException:
                with suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=directory)
                raise
            os.fsync(directory)

    def remove(self, name: str) -> None:
        """Remove a file, or an empty folder in this one, if it exists."""
        with self.opened() as directory, suppress(FileNotFoundError):
            if directory is None:
                return
            try:
                os.unlink(name, dir_fd=directory)
            except (IsADirectoryError, PermissionError):  # the latter on macOS
                with suppress(OSError):  # not empty: something else is in it
                    os.rmdir(name, dir_fd=directory)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder for one writer at a time; makes it if it does not exist."""
        with self.made() as directory:
            fcntl.flock(directory, fcntl.LOCK_EX)
            yield

    def _refused(self, error: OSError, name: str = "") -> TemplateError:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            return TemplateError(f"{self._shown(name)} is, or is below, a link or a file in the way; remove it")
        return TemplateError(f"{self._shown(name)} cannot be opened: {error.strerror}")

    def _shown(self, name: str) -> str:
        return line(str(self.path / name) if name else str(self.path))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False)
