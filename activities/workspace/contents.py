"""Reads, fingerprints and writes the contents of workspace files, in bounded memory.

Reading never blocks on a pipe or device and never reads more than the limit. New content is written to a temporary file
beside the old one and synced before the two are swapped, so readers see either the old or the new content, also after a
crash or on a full disk. Permissions are preserved.

Files of any size are hashed whole: samples missed changes between them, and hashing is a tenth of reading (3 GiB in
memory: 0.33 s to read, 0.37 s to read and hash). Rejected: inode, size and change time, which a change within one tick
of the clock does not touch.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

import xxhash

from plansurvive.activities.workspace.file_names import visible
from plansurvive.activities.workspace.paths import shown
from plansurvive.activities.workspace.workspace import DirectoryEntry, not_found
from plansurvive.plans.errors import ToolError
from plansurvive.plans.file_stamps import Stamp

MAX_FILE_BYTES = 16 * 1024 * 1024
"""Largest file that a tool reads or writes as a whole."""

_PIECE = 1024 * 1024
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def read_bytes(place: DirectoryEntry) -> bytes:
    """The content. Raises ToolError NOT_FOUND, NOT_REGULAR or FILE_TOO_LARGE."""
    with _opened(place) as file:
        data = _read(file, MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise too_large(place.path)
    return data


def read_head(place: DirectoryEntry, length: int) -> bytes:
    """The first `length` bytes at most. Raises ToolError NOT_FOUND or NOT_REGULAR."""
    with _opened(place) as file:
        return _read(file, length)


def read_text(place: DirectoryEntry) -> str:
    """The content as text. Raises what `read_bytes` and `text_of` raise."""
    return text_of(place, read_bytes(place))


def text_of(place: DirectoryEntry, data: bytes) -> str:
    """Decode a content, line endings unchanged. Raises ToolError BINARY_FILE unless it is UTF-8 text."""
    if b"\0" in data:
        raise ToolError("BINARY_FILE", f"{shown(place.path)} is not a text file: it contains NUL bytes")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ToolError(
            "BINARY_FILE",
            f"{shown(place.path)} is not UTF-8 text (byte {error.start}); convert it with a command first",
        ) from None


def read_lines(place: DirectoryEntry, offset: int, limit: int) -> tuple[bytes, Stamp]:
    """`limit` lines from line `offset` on, and the stamp of the whole file; works on files of any size."""
    chosen, line = bytearray(), 0
    hasher, size = xxhash.xxh3_128(), 0
    with _opened(place) as file:
        for piece in _pieces(file):
            hasher.update(piece)
            size += len(piece)
            if line < offset + limit:
                start, line = _skip(piece, line, offset)
                end, line = _skip(piece, line, offset + limit, start)
                chosen += piece[start:end]
            if len(chosen) > MAX_FILE_BYTES:
                raise too_large(place.path)
    return bytes(chosen), Stamp(hash=hasher.hexdigest(), size=size, linked=place.linked)


def stamp_at(place: DirectoryEntry) -> Stamp | None:
    """The file's stamp, for which all of it is read; None unless it is a regular file."""
    return read_lines(place, 0, 0)[1] if place.is_regular else None


def token(name: str, directory: int) -> str:
    """Hash of the full content of a regular file; `link:...` or `special:...` for others; empty if nothing is there."""
    try:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            return f"link:{visible(os.readlink(name, dir_fd=directory))}"
        if not stat.S_ISREG(status.st_mode):
            return f"special:{status.st_ino}"
        hasher = xxhash.xxh3_128()
        with os.fdopen(os.open(name, _READ, dir_fd=directory), "rb", buffering=0) as file:
            for piece in _pieces(file):
                hasher.update(piece)
        return hasher.hexdigest()
    except FileNotFoundError:
        return ""


def has_content(place: DirectoryEntry, pieces: Iterable[bytes]) -> bool:
    """Whether the pieces are the file's content, one after the other. Raises ToolError NOT_FOUND or NOT_REGULAR."""
    with _opened(place) as file:
        return all(_read(file, len(piece)) == piece for piece in pieces) and not _read(file, 1)


def write_beside(place: DirectoryEntry, name: str, pieces: Iterable[bytes]) -> Stamp:
    """Write a new file beside the place, with the permissions of the existing file; synced on return.

    Returns the hash of the full content, and its size. If anything is raised, also by `pieces`, the new file is
    removed.
    """
    try:
        return _write_new(place, name, pieces)
    except BaseException as error:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=place.directory)
        if isinstance(error, OSError) and error.filename in (None, name):
            error.filename = place.path  # the name that people know
        raise


def check_replaceable(place: DirectoryEntry) -> None:
    """Raise ToolError NOT_REGULAR if something is there that is not a regular file, or one with several hard links."""
    if place.status is None:
        return
    _check_regular(place, place.status)
    if place.status.st_nlink > 1:
        raise ToolError(
            "NOT_REGULAR",
            f"{shown(place.path)} has another hard link, which may be outside the workspace; copy the file first",
        )


def too_large(path: str) -> ToolError:
    """The error for a file over the size limit."""
    return ToolError(
        "FILE_TOO_LARGE",
        f"{shown(path)} is larger than {MAX_FILE_BYTES // 1024 // 1024} MiB;"
        " use read_file with offset and limit, or run_command, to work on a part",
    )


# Not `runtime.base.atomic_file.write_whole`: the directory is an open descriptor that no link can redirect, the effect
# log holds the temporary name, mode and owner are those of the replaced file, and the caller does the swap, after
# logging the effect.
def _write_new(place: DirectoryEntry, name: str, pieces: Iterable[bytes]) -> Stamp:
    hasher, size = xxhash.xxh3_128(), 0
    descriptor = os.open(name, _CREATE, 0o666, dir_fd=place.directory)
    with os.fdopen(descriptor, "wb") as file:
        for piece in pieces:
            file.write(piece)
            hasher.update(piece)
            size += len(piece)
        file.flush()
        if place.status is not None:
            if (place.status.st_uid, place.status.st_gid) != (os.geteuid(), os.getegid()):
                with suppress(PermissionError):
                    os.fchown(descriptor, place.status.st_uid, place.status.st_gid)
            os.fchmod(descriptor, place.status.st_mode & 0o777)
        os.fsync(descriptor)
    return Stamp(hash=hasher.hexdigest(), size=size, linked=place.linked)


@contextmanager
def _opened(place: DirectoryEntry) -> Iterator[BinaryIO]:
    """The file, open for reading. Raises ToolError NOT_FOUND or NOT_REGULAR."""
    if place.status is None:
        raise not_found(place.path)
    _check_regular(place, place.status)
    descriptor = os.open(place.name, _READ, dir_fd=place.directory)
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        _check_regular(place, os.fstat(descriptor))
        yield file


def _read(file: BinaryIO, length: int) -> bytes:
    """Read up to `length` bytes; loops because one read of an unbuffered file may return less."""
    data = bytearray()
    while len(data) < length and (piece := file.read(length - len(data))):
        data += piece
    return bytes(data)


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    while piece := file.read(_PIECE):
        yield piece


def _skip(piece: bytes, line: int, wanted: int, start: int = 0) -> tuple[int, int]:
    """Index where line `wanted` begins, scanning from `start`, which is in line `line`; and the line reached.

    The index is the end of the piece if the line begins in a later one.
    """
    missing = wanted - line
    if missing <= 0:
        return start, line
    if piece.count(b"\n", start) < missing:
        return len(piece), line + piece.count(b"\n", start)
    for _ in range(missing):
        start = piece.index(b"\n", start) + 1
    return start, wanted


def _check_regular(place: DirectoryEntry, status: os.stat_result) -> None:
    if stat.S_ISREG(status.st_mode):
        return
    kind = "a directory" if stat.S_ISDIR(status.st_mode) else "a pipe, device, socket or link"
    raise ToolError("NOT_REGULAR", f"{shown(place.path)} is {kind}, not a regular file")
