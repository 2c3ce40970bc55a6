"""Finds out which directory is behind a path: inode and time of birth, by statx(2), which Python 3.11 has not."""

from __future__ import annotations

import ctypes
import os
import stat
import struct
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from plansurvive.plans.directory import MOVED, DirectoryIdentity, moved_text
from plansurvive.plans.errors import ToolError

_EMPTY_PATH, _BIRTH = 0x1000, 0x800
_SIZE, _MASK, _BORN = 256, 0, 80
"""Length of `struct statx`, and where in it are the mask of known fields and the time of birth."""


def identity_of(path: str) -> DirectoryIdentity:
    """The directory that a path leads to. Raises OSError, NotADirectoryError too."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return identity_of_open(descriptor, path)
    finally:
        os.close(descriptor)


def identity_of_open(descriptor: int, path: str) -> DirectoryIdentity:
    """The directory that is open as `descriptor`. Raises OSError."""
    found = os.fstat(descriptor)
    born = _born(descriptor, found)
    return DirectoryIdentity(path=path, inode=found.st_ino, born=born, device=found.st_dev, mounts=_mounts())


def check_open(descriptor: int, known: DirectoryIdentity | None, plan_id: str) -> None:
    """Raise ToolError WORKSPACE_MOVED if an open workspace is another directory than the one that is known."""
    if known is not None and not known.is_same(identity_of_open(descriptor, known.path)):
        raise ToolError(MOVED, moved_text(known.path, plan_id))


def check_path(path: str, known: DirectoryIdentity | None, plan_id: str) -> None:
    """As `check_open`, of the directory that a path leads to now; a missing one is left to who needs it."""
    if known is None:
        return
    if (found := _at(path)) is not None:
        if not known.is_same(found):
            raise ToolError(MOVED, moved_text(known.path, plan_id))
        return
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            check_open(descriptor, known, plan_id)
        finally:
            os.close(descriptor)


def _at(path: str) -> DirectoryIdentity | None:
    """The directory that a path leads to, by one call of the system instead of four: each step asks.

    None where statx cannot say all of it, as of what is no directory.
    """
    statx, answer = _statx(), _Buffer()
    if statx is None or statx(_HERE, os.fsencode(path), 0, _BASIC | _BIRTH, answer):
        return None
    mask, mode, inode, seconds, nanoseconds, major, minor = _FIELDS.unpack_from(answer)
    if mask & _BASIC != _BASIC or not stat.S_ISDIR(mode):
        return None
    born = f"{seconds}.{nanoseconds:09d}" if mask & _BIRTH and seconds else ""
    return DirectoryIdentity(path=path, inode=inode, born=born, device=os.makedev(major, minor), mounts=_mounts())


_Buffer = ctypes.c_char * _SIZE
_FIELDS = struct.Struct("=I24xH2xQ40xqI44xII")
"""Of `struct statx`: mask, mode, inode, time of birth, device."""
_HERE, _BASIC = -100, 0x7FF
"""AT_FDCWD and STATX_BASIC_STATS."""


def _born(descriptor: int, found: os.stat_result) -> str:
    """The time of birth; empty where the file system, or the system, does not tell."""
    if (born := getattr(found, "st_birthtime", None)) is not None:  # macOS
        return f"{born:.9f}"
    statx = _statx()
    answer = _Buffer()
    if statx is None or statx(descriptor, b"", _EMPTY_PATH, _BIRTH, answer):
        return ""
    if not struct.unpack_from("=I", answer.raw, _MASK)[0] & _BIRTH:
        return ""
    seconds, nanoseconds = struct.unpack_from("=qI", answer.raw, _BORN)
    return f"{seconds}.{nanoseconds:09d}" if seconds else ""


@cache
def _statx() -> Any:
    return getattr(ctypes.CDLL(None), "statx", None) if sys.platform == "linux" else None


@cache
def _mounts() -> str:
    """This boot and this process's set of mounts: within them a device keeps its number.

    A container that starts again mounts its file systems anew, under other numbers.
    """
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {os.stat('/proc/self/ns/mnt').st_ino}"  # noqa: PTH116
    return str(os.getpid())
