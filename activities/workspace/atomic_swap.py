"""Putting one name of a directory in the place of another in a single move, where the system can (Linux renameat2).

`exchange` swaps two names, so that what was there is not lost but comes out under the other name; `put_new` gives a
file a name only if nothing has it. Where a file system cannot swap, `exchange` says so and the caller falls back to a
plain rename, with a moment in which a save by another program can be lost: `plan doctor` tells.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import tempfile
from contextlib import suppress
from pathlib import Path

_NOREPLACE, _EXCHANGE = 1, 2
_NUMBERS = {"x86_64": 316, "aarch64": 276, "riscv64": 276, "ppc64le": 357, "s390x": 347}
_UNSUPPORTED = frozenset((errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM))
_LIBC = ctypes.CDLL(None, use_errno=True)


def exchange(one: str, other: str, directory: int) -> bool:
    """Swap two names of an open directory. False: this file system cannot. Raises OSError, FileNotFoundError too."""
    return _renameat2(one, other, directory, _EXCHANGE)


def put_new(temporary: str, name: str, directory: int) -> None:
    """Give the file `temporary` its name. Raises FileExistsError when something has that name."""
    if _renameat2(temporary, name, directory, _NOREPLACE):
        return
    os.link(temporary, name, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
    os.unlink(temporary, dir_fd=directory)


def is_supported(directory: Path) -> bool:
    """Whether names can be swapped there; tried with two files of our own."""
    with tempfile.TemporaryDirectory(prefix=".plans-probe-", dir=directory) as folder:
        for name in "ab":
            Path(folder, name).touch()
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with suppress(OSError):
                return exchange("a", "b", descriptor)
            return False
        finally:
            os.close(descriptor)


def _renameat2(one: str, other: str, directory: int, flags: int) -> bool:
    number = _NUMBERS.get(platform.machine())
    if number is None or not hasattr(_LIBC, "syscall"):
        return False
    old, new = ctypes.c_char_p(os.fsencode(one)), ctypes.c_char_p(os.fsencode(other))
    arguments = ctypes.c_long(number), ctypes.c_int(directory), old, ctypes.c_int(directory), new, ctypes.c_uint(flags)
    if _LIBC.syscall(*arguments) == 0:
        return True
    code = ctypes.get_errno()
    if code in _UNSUPPORTED:
        return False
    raise OSError(code, os.strerror(code), other)
