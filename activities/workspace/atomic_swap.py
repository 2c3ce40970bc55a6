"""Atomic renames of two names in one directory (Linux renameat2): exchange them, or rename without replacing.

`exchange` swaps two names, so the file that was replaced is not lost: it has the other name afterwards. `put_new`
renames a file only if the new name is free. On a file system that cannot swap, `exchange` returns False and the caller
falls back to a plain rename, during which another program's save can be lost; `plan doctor` reports such a workspace.
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
    """Swap two names in an open directory; False if the file system cannot. Raises OSError (FileNotFoundError too)."""
    return _renameat2(one, other, directory, _EXCHANGE)


def put_new(temporary: str, name: str, directory: int) -> None:
    """Rename `temporary` to `name`. Raises FileExistsError if `name` exists."""
    if _renameat2(temporary, name, directory, _NOREPLACE):
        return
    os.link(temporary, name, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
    os.unlink(temporary, dir_fd=directory)


def is_supported(directory: Path) -> bool:
    """Whether this directory's file system can swap names; tried with two temporary files."""
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
