"""Installs the seccomp filter that reports system calls to a listener. Linux 5.19 or later, x86_64 and aarch64.

The kernel holds a reported call until the listener answers; opens that only read are not reported, and the calls that
are never reported pay nothing (the kernel knows them by their number). The filter denies nothing: it is no part of the
sandbox. Where another filter with a listener is in force already, the kernel refuses this one (EBUSY). Standard
library only: the launcher loads this file.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct

from plansurvive.activities.tracing import calls

_MACHINES = {"x86_64": (0xC000003E, 0, 317), "aarch64": (0xC00000B7, 1, 277)}
"""AUDIT_ARCH constant, position in the table of system calls, number of the call `seccomp`; by machine."""
_NO_NEW_PRIVS, _SET_FILTER = 38, 1
_NEW_LISTENER, _WAIT_KILLABLE = 1 << 3, 1 << 5
"""The second one (since 5.19): a signal does not interrupt a call that is being reported, unless it is fatal."""
_OF_32_BITS = 0x40000000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _REPORT = 0x7FFF0000, 0x7FC00000

Row = tuple[int, int, int, int]
"""A BPF instruction: code, jump if true, jump if false, operand."""


def is_possible() -> bool:
    """Whether the filter supports this architecture."""
    return os.uname().machine in _MACHINES


def handlers() -> dict[int, str]:
    """The names of the reported calls by their numbers on this machine."""
    machine = _MACHINES[os.uname().machine][1]
    return {number: name for name, (numbers, _, _) in calls.CALLS.items() if (number := numbers[machine]) is not None}


def architecture() -> int:
    """The AUDIT_ARCH constant of this machine."""
    return _MACHINES[os.uname().machine][0]


def install(*, no_new_privileges: bool) -> int:
    """Report this process and its descendants from now on. Returns the listener's descriptor. Raises OSError.

    Without `no_new_privileges` (which keeps set-user-id programs from working) it needs CAP_SYS_ADMIN.
    """
    if not is_possible():
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    program = b"".join(struct.pack("=HBBI", *row) for row in _rows())
    held = ctypes.create_string_buffer(program, len(program))
    found = struct.pack("@HP", len(program) // 8, ctypes.addressof(held))
    libc = ctypes.CDLL(None, use_errno=True)
    if no_new_privileges:
        libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0)
    number = _MACHINES[os.uname().machine][2]
    listener = int(libc.syscall(number, _SET_FILTER, _NEW_LISTENER | _WAIT_KILLABLE, found))
    if listener < 0:
        raise OSError(ctypes.get_errno(), f"seccomp: {os.strerror(ctypes.get_errno())}")
    return listener


def _rows() -> list[Row]:
    foreign: list[Row] = [(_LOAD, 0, 0, _NUMBER)]
    for left, number in zip(range(len(calls.FOREIGN), 0, -1), calls.FOREIGN, strict=True):
        foreign.append((_EQUAL, left, 0, number))
    foreign += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _REPORT)]
    rows = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, len(foreign), 0, architecture()),
        *foreign,
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _OF_32_BITS),
        (_RETURN, 0, 0, _REPORT),
    ]
    for number, name in handlers().items():
        body = _body(name)
        rows += [(_EQUAL, 0, len(body), number), *body]
    return [*rows, (_RETURN, 0, 0, _ALLOW)]


def _body(name: str) -> list[Row]:
    report: list[Row] = [(_RETURN, 0, 0, _REPORT)]
    if name in calls.FLAGS:
        return [_argument(calls.FLAGS[name]), (_ANY_BIT, 1, 0, calls.WRITING), (_RETURN, 0, 0, _ALLOW), *report]
    if name in calls.OF_DESCRIPTOR:
        return [_argument(calls.OF_DESCRIPTOR[name]), (_EQUAL, 0, 1, 0), (_RETURN, 0, 0, _ALLOW), *report]
    return report


def _argument(position: int) -> Row:
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * position)
