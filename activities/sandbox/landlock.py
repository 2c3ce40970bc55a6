"""Landlock: irrevocably restricts a process's file system and network access. Linux, unprivileged; sandbox level 1.

Standard library only: the launcher loads this file on its own. Rights unknown to the kernel are left out (TCP needs ABI
4, signals and abstract sockets ABI 6). Landlock does not cover file modes, owners and timestamps, nor named Unix
sockets; sandbox level 2 does. Of the network it covers TCP only; seccomp.py covers the rest.
"""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Iterable
from contextlib import suppress

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_NO_NEW_PRIVS = 38
_EXECUTE, _WRITE, _READ, _READ_DIR, _TRUNCATE, _IOCTL = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 14, 1 << 15
_OF_FILES = _EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL
_READING = _EXECUTE | _READ | _READ_DIR
_KNOWN = {1: 13, 2: 14, 3: 15, 4: 15}
"""Number of file access rights by ABI; 16 from ABI 5 on."""
_TCP, _SCOPES, _SCOPE_SOCKETS, _SCOPE_SIGNALS = 3, 3, 1, 2
SIGNALS = 6
"""From this ABI on, signals are restricted."""
GAPS = {
    2: "moves between directories",
    3: "the length of files",
    5: "device controls",
    SIGNALS: "signals to other processes",
}
"""What Landlock began to guard, by ABI."""
WHOLE = max(GAPS)


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def abi() -> int:
    """The Landlock ABI version of this kernel; 0 if unavailable."""
    with suppress(AttributeError, OSError):
        return max(0, int(ctypes.CDLL(None).syscall(_CREATE, None, 0, 1)))
    return 0


def gaps(abi: int) -> str:
    """What an old Landlock does not guard; seccomp denies connections at every version."""
    open_ = [text for first, text in GAPS.items() if abi < first]
    return f"this kernel's Landlock (ABI {abi}) does not guard {', '.join(open_)}; update the kernel to 6.12 or later"


def restrict(writable: Iterable[str], readable: Iterable[str], network: bool) -> None:
    """Restrict this process and its descendants to these paths. Raises OSError.

    With `network` false they can neither connect nor listen over TCP. Sets no_new_privs.
    """
    version, libc = abi(), ctypes.CDLL(None, use_errno=True)
    if not version:
        raise OSError("this system has no Landlock")
    every = (1 << _KNOWN.get(version, 16)) - 1
    attributes = _Ruleset(every, 0 if network or version < 4 else _TCP, _SCOPES if version >= 6 else 0)
    rules = _new(libc, attributes, 24 if version >= SIGNALS else 16 if version >= 4 else 8)
    for path in readable:
        _allow(libc, rules, path, _READING)
    for path in writable:
        _allow(libc, rules, path, every)
    _apply(libc, rules)


def enclose_signals() -> None:
    """From now on this process can signal only itself and its descendants. Raises OSError; needs ABI `SIGNALS`."""
    libc = ctypes.CDLL(None, use_errno=True)
    _apply(libc, _new(libc, _Ruleset(0, 0, _SCOPE_SIGNALS), 24))


def enclose_sockets() -> None:
    """From now on this process connects to abstract Unix sockets of itself and its descendants only. As above."""
    libc = ctypes.CDLL(None, use_errno=True)
    _apply(libc, _new(libc, _Ruleset(0, 0, _SCOPE_SOCKETS), 24))


def _new(libc: ctypes.CDLL, attributes: _Ruleset, size: int) -> int:
    return _checked(libc.syscall(_CREATE, ctypes.byref(attributes), ctypes.c_size_t(size), 0))


def _apply(libc: ctypes.CDLL, rules: int) -> None:
    _checked(libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0))
    _checked(libc.syscall(_RESTRICT, rules, 0))
    os.close(rules)


def _allow(libc: ctypes.CDLL, rules: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # a missing path needs no rule
    try:
        if os.readlink(f"/proc/self/fd/{place}") != os.path.normpath(path):
            return  # a link: what it leads to has a rule if it is to have one, or somebody has just put it there
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            rights &= _OF_FILES
        every = (1 << _KNOWN.get(abi(), 16)) - 1
        beneath = _Beneath(rights & every, place)
        _checked(libc.syscall(_ADD, rules, 1, ctypes.byref(beneath), 0))
    finally:
        os.close(place)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"Landlock: {os.strerror(number)}")
    return result
