"""No network: a process gives up for good making sockets that reach beyond this host's files. Linux, no privilege.

Standard library only: the launcher loads this file by itself. A seccomp filter refuses every family of sockets but Unix
and netlink ones (TCP, UDP, MPTCP, raw ones alike: the network is unreachable), and io_uring, which would get past it.
Landlock's own rules guard TCP alone, and MPTCP gets round them. Programs for another kind of processor (32 bits) are
killed: their calls have other numbers.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform

_NO_NEW_PRIVS, _SECCOMP, _FILTER = 38, 22, 2
_MACHINES = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
"""What the kernel calls them, and their number of the call `socket`."""
_IO_URING = 425
_OF_32_BITS = 0x40000000
"""Numbers from here on are calls of programs for x32."""
_NUMBER, _ARCHITECTURE, _FAMILY = 0, 4, 16
"""Where they stand in what a filter is shown."""
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _KILL, _REFUSE = 0x7FFF0000, 0x80000000, 0x00050000
_UNIX, _NETLINK = 1, 16


class _Instruction(ctypes.Structure):
    _fields_ = (("code", ctypes.c_ushort), ("yes", ctypes.c_ubyte), ("no", ctypes.c_ubyte), ("value", ctypes.c_uint32))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.POINTER(_Instruction)))


def is_possible() -> bool:
    """Whether the filter is known for this kind of processor."""
    return platform.machine() in _MACHINES


def give_up() -> None:
    """From now on this process, and all it starts, makes no such socket. Raises OSError where it cannot be done."""
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
    """The filter: what to do, how many rows to pass over if so and if not, with which value."""
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
