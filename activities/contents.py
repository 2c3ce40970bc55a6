"""What is in a file: read whole and bounded, written whole and at once.

Reading never blocks on a pipe or device and never takes in more than the limit. Writing makes a new file beside the
old one, syncs it and renames it over, so that whoever looks sees the old content or the new, also after a crash or
on a full disk; permissions stay. A temporary file left by a killed attempt is swept by the next attempt of the same
call.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from contextlib import suppress

from activities.paths import shown
from activities.workspace import Place, not_found
from plans.errors import ToolError

MAX_FILE_BYTES = 16 * 1024 * 1024
"""What a tool reads or writes of one file, at most."""

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def read_bytes(place: Place) -> bytes:
    """The content. Raises NOT_FOUND, NOT_REGULAR or FILE_TOO_LARGE."""
    if place.status is None:
        raise not_found(place.path)
    _check_regular(place, place.status)
    descriptor = os.open(place.name, _READ, dir_fd=place.directory)
    with os.fdopen(descriptor, "rb") as file:
        _check_regular(place, os.fstat(descriptor))
        data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise too_large(place.path)
    return data


def read_text(place: Place) -> str:
    """The content as text, line endings as they are. Raises BINARY_FILE for what is not UTF-8 text."""
    data = read_bytes(place)
    if b"\0" in data:
        raise ToolError("BINARY_FILE", f"{shown(place.path)} holds binary data (NUL bytes); it is no text file")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ToolError(
            "BINARY_FILE",
            f"{shown(place.path)} is not UTF-8 text (byte {error.start}); convert it with a command first",
        ) from None


def write_bytes(place: Place, data: bytes, key: str, *, again: bool = False) -> None:
    """Put `data` there, all or nothing. `key` names the call; `again` sweeps what a crashed attempt of it left."""
    if len(data) > MAX_FILE_BYTES:
        raise too_large(place.path)
    if place.status is not None:
        check_replaceable(place)
    place.make_folders()
    prefix = f".plans-{hashlib.sha256(key.encode()).hexdigest()[:16]}-"
    if again:
        _sweep(place.directory, prefix)
    temporary = f"{prefix}{secrets.token_hex(6)}.tmp"
    try:
        _write_new(place, temporary, data)
        os.rename(temporary, place.name, src_dir_fd=place.directory, dst_dir_fd=place.directory)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=place.directory)
        raise
    os.fsync(place.directory)


def check_replaceable(place: Place) -> None:
    """Raise NOT_REGULAR unless what is there is a plain file with this one name."""
    if place.status is None:
        return
    _check_regular(place, place.status)
    if place.status.st_nlink > 1:
        raise ToolError(
            "NOT_REGULAR", f"{shown(place.path)} has a second name (hard link) that may lie elsewhere; copy it first"
        )


def too_large(path: str) -> ToolError:
    """The error for more than a tool takes."""
    return ToolError(
        "FILE_TOO_LARGE",
        f"{shown(path)} is larger than {MAX_FILE_BYTES // 1024 // 1024} MiB; work on a part of it with run_command",
    )


def _write_new(place: Place, name: str, data: bytes) -> None:
    descriptor = os.open(name, _CREATE, 0o666, dir_fd=place.directory)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        if place.status is not None:
            if (place.status.st_uid, place.status.st_gid) != (os.geteuid(), os.getegid()):
                with suppress(PermissionError):
                    os.fchown(descriptor, place.status.st_uid, place.status.st_gid)
            os.fchmod(descriptor, place.status.st_mode & 0o777)
        os.fsync(descriptor)


def _sweep(directory: int, prefix: str) -> None:
    with os.scandir(directory) as entries:
        left = [entry.name for entry in entries if entry.name.startswith(prefix)]
    for name in left:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=directory)


def _check_regular(place: Place, status: os.stat_result) -> None:
    if stat.S_ISREG(status.st_mode):
        return
    kind = "a directory" if stat.S_ISDIR(status.st_mode) else "a pipe, device, socket or link"
    raise ToolError("NOT_REGULAR", f"{shown(place.path)} is {kind}, not a regular file")
