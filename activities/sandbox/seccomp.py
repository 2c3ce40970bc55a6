"""A seccomp filter that irrevocably denies network sockets to a process. Linux, unprivileged.

Standard library only: the launcher loads this file on its own. The filter denies every socket family except Unix and
netlink (TCP, UDP, MPTCP and raw sockets fail with ENETUNREACH), and io_uring, which would bypass it. Landlock alone
covers only TCP and is bypassed by MPTCP. Programs for another architecture (32-bit) are killed, because their system
call numbers differ.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform

_NO_NEW_PRIVS, _SECCOMP, _FILTER = 38, 22, 2
_MACHINES = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
"""AUDIT_ARCH constant and number of the `socket` system call, by machine."""
_IO_URING = 425
_OF_32_BITS = 0x40000000
"""System call numbers from here on belong to the x32 ABI."""
_NUMBER, _ARCHITECTURE, _FAMILY = 0, 4, 16
"""Offsets in struct seccomp_data."""
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _KILL, _REFUSE = 0x7FFF0000, 0x80000000, 0x00050000
_UNIX, _NETLINK = 1, 16


class _Instruction(ctypes.Structure):
    _fields_ = (("code", ctypes.c_ushort), ("yes", ctypes.c_ubyte), ("no", ctypes.c_ubyte), ("value", ctypes.c_uint32))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.POINTER(_Instruction)))


def is_possible() -> bool:
    """Whether the filter supports this architecture."""
    return platform.machine() in _MACHINES


def give_up() -> None:
    """Deny network sockets to this process and its descendants. Raises OSError if unsupported."""
    if not is_possible():
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    rows = _rows(*_MACHINES[platform.machine()])
    instructions = (_Instruction * len(rows))(*(_Instruction(*row) for row in rows))
    program = _Program(len(rows), instructions)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(_SECCOMP, _FILTER, ctypes.byref(program), 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, f"seccomp: {os.strerror(number)}")


def _rows(architecture: int, socket: int) -> list[tuple[int, int, int, int]]:
    """The BPF program: rows of (code, jump if true, jump if false, operand)."""
    return [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 7, 0, _OF_32_BITS),
        (_EQUAL, 6, 0, _IO_URING),
        (_EQUAL, 1, 0, socket),
        (_RETURN, 0, 0, _ALLOW),
        (_LOAD, 0, 0, _FAMILY),
        (_EQUAL, 3, 0, _UNIX),
        (_EQUAL, 2, 0, _NETLINK),
        (_RETURN, 0, 0, _REFUSE | errno.ENETUNREACH),
        (_RETURN, 0, 0, _REFUSE | errno.ENOSYS),
        (_RETURN, 0, 0, _ALLOW),
    ]
