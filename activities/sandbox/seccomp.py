"""A seccomp filter that irrevocably denies system calls to a command. Linux, unprivileged; levels 1 and 2.

Denied are calls that reach beyond the files and processes of the command: key rings, mounts and namespaces, the
kernel's own settings, typing into terminals, sockets other than Unix, netlink for routes and (if allowed) the Internet,
and setting the set-user-id and set-group-id bits. Refusals look like those of a kernel without the feature. Landlock
covers only TCP and is bypassed by MPTCP: this filter covers the rest. Programs for another architecture (32-bit) are
killed, because their system call numbers differ. Standard library only: the launcher loads this file.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct

from plansurvive.activities.sandbox import system_calls as calls

_NO_NEW_PRIVS, _SECCOMP, _FILTER = 38, 22, 2
_MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
"""AUDIT_ARCH constant, and position in the table of system calls, by machine."""
_OF_32_BITS = 0x40000000
"""System call numbers from here on belong to the x32 ABI."""
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
"""Offsets in struct seccomp_data; an argument takes 8 bytes, little-endian."""
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _REFUSE = 0x7FFF0000, 0x80000000, 0x00050000
_UNIX, _INTERNET, _INTERNET_6, _NETLINK = 1, 2, 10, 16
_ROUTE = 0
"""The netlink protocol NETLINK_ROUTE."""
_TYPING = (0x5412, 0x541C)
"""ioctl requests TIOCSTI and TIOCLINUX: they put characters into a terminal's input."""
_NAMESPACES = 0x7E020000
"""Flags of clone for new namespaces."""
_CREATES = os.O_CREAT | (getattr(os, "O_TMPFILE", 0) & ~os.O_DIRECTORY)
_AS_OWNER = 0o6000
"""The set-user-id and set-group-id bits."""

Row = tuple[int, int, int, int]
"""A BPF instruction: code, jump if true, jump if false, operand."""


def is_possible() -> bool:
    """Whether the filter supports this architecture."""
    return _machine() in _MACHINES


def program(*, internet: bool, shared_memory: bool) -> bytes:
    """The compiled filter. `internet`: IP sockets are allowed; `shared_memory`: so are System V and POSIX queues.

    Raises OSError if the architecture is unsupported.
    """
    if not is_possible():
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    return b"".join(struct.pack("=HBBI", *row) for row in _rows(*_MACHINES[_machine()], internet, shared_memory))


def give_up(filter_: bytes) -> None:
    """Apply a filter to this process and its descendants. Sets no_new_privs. Raises OSError."""
    held = ctypes.create_string_buffer(filter_, len(filter_))
    found = struct.pack("@HP", len(filter_) // 8, ctypes.addressof(held))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(_SECCOMP, _FILTER, found, 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, f"seccomp: {os.strerror(number)}")


def _machine() -> str:
    return os.uname().machine


def _rows(architecture: int, machine: int, internet: bool, shared_memory: bool) -> list[Row]:
    rows = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _OF_32_BITS),
        (_RETURN, 0, 0, _REFUSE | errno.ENOSYS),
    ]
    refused = [(calls.KERNEL, errno.EPERM), (calls.UNKNOWN, errno.ENOSYS)]
    refused += [] if shared_memory else [(calls.SHARED_MEMORY, errno.ENOSYS)]
    for table, error in refused:
        for numbers in table.values():
            rows += _of_call(numbers[machine], [(_RETURN, 0, 0, _REFUSE | error)])
    for numbers in calls.SOCKETS.values():
        rows += _of_call(numbers[machine], _of_family(internet))
    typing = [(_EQUAL, 0, 1, request) for request in _TYPING]
    asked = [_argument(1)] + [row for each in typing for row in (each, (_RETURN, 0, 0, _REFUSE | errno.EPERM))]
    rows += _of_call(calls.IOCTL[machine], asked)
    rows += _of_call(calls.CLONE[machine], _if_any(0, _NAMESPACES))
    for numbers, at in calls.MODES.values():
        rows += _of_call(numbers[machine], _if_any(at, _AS_OWNER))
    for numbers, at in calls.OPENING.values():
        rows += _of_call(numbers[machine], [_argument(at), (_ANY_BIT, 0, 3, _CREATES), *_if_any(at + 1, _AS_OWNER)])
    return [*rows, (_RETURN, 0, 0, _ALLOW)]


def _of_call(number: int | None, rows: list[Row]) -> list[Row]:
    """What applies to one system call; what the rows do not refuse is allowed."""
    if number is None:
        return []
    body = [*rows, (_RETURN, 0, 0, _ALLOW)]
    return [(_EQUAL, 0, len(body), number), *body]


def _of_family(internet: bool) -> list[Row]:
    allowed = [_UNIX, *([_INTERNET, _INTERNET_6] if internet else [])]
    rows = [_argument(0)]
    # Of netlink only what lists addresses and routes: by other protocols, processes of the host could be reached
    rows += [(_EQUAL, 0, 4, _NETLINK), _argument(2), (_EQUAL, 0, 1, _ROUTE), (_RETURN, 0, 0, _ALLOW)]
    rows += [(_RETURN, 0, 0, _REFUSE | errno.EPROTONOSUPPORT)]
    for family in allowed:
        rows += [(_EQUAL, 0, 1, family), (_RETURN, 0, 0, _ALLOW)]
    for family in (_INTERNET, _INTERNET_6):
        rows += [(_EQUAL, 0, 1, family), (_RETURN, 0, 0, _REFUSE | errno.ENETUNREACH)]
    return [*rows, (_RETURN, 0, 0, _REFUSE | errno.EAFNOSUPPORT)]


def _if_any(argument: int, bits: int) -> list[Row]:
    """Refuse with EPERM if the argument has any of the bits."""
    return [_argument(argument), (_ANY_BIT, 0, 1, bits), (_RETURN, 0, 0, _REFUSE | errno.EPERM)]


def _argument(position: int) -> Row:
    """Load the lower half of an argument: the kernel reads no more of those that are checked here."""
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * position)
