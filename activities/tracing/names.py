"""Finds the paths that a reported system call names, as its process sees them. Standard library only.

The path is read from the process's memory and resolved by the kernel in the process's own root (`openat2`), so that
links, working directories, descriptors and the mounts of the sandbox count as they do for the call itself.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import time

from plansurvive.activities.tracing import calls, filter
from plansurvive.activities.tracing.trace_file import NAME, TREE, TraceFile

FRESH_SECONDS = 0.2
"""How long a directory's real path is remembered: another process may move it."""
_OPENAT2, _IN_ROOT = 437, 0x10
_PATH_ONLY = getattr(os, "O_PATH", 0) | os.O_DIRECTORY | os.O_CLOEXEC
_FIRST, _MOST, _PAGE = 256, 4_096, 4_096
_UNIX = 1
"""The address family of Unix sockets."""


class Names:
    """Records what reported calls name."""

    def __init__(self, file: TraceFile) -> None:
        self._file, self._memory = file, _Memory()
        self._known: dict[tuple[int, bytes], tuple[float, bytes]] = {}
        self._calls = {number: (name, *calls.CALLS[name][1:]) for number, name in filter.handlers().items()}

    def record(self, process: int, number: int, arguments: list[int]) -> None:
        """Record the paths of a call; the number is -1 for a call of another architecture. Raises OSError."""
        name, effect, paths = self._calls.get(number, ("", calls.DOUBT, ()))
        if effect == calls.DOUBT:
            self._file.doubt()
        elif effect == calls.SOCKET:
            if path := self._memory.socket(process, arguments[1], arguments[2]):
                self._note(process, b"", path, calls.NAME)
        elif name != "openat2" or self._memory.number(process, arguments[2]) & calls.WRITING:
            for folder, at in paths:
                base, path = _place(arguments, folder), self._memory.text(process, arguments[at])
                try:
                    self._note(process, base, path, effect)
                except OSError as error:
                    raise _of_whole_path(error) from None
            if effect == calls.TREE or name.startswith("symlink"):
                self._known.clear()

    def _note(self, process: int, base: bytes, path: bytes, effect: str) -> None:
        """Record the path that a call names, and what it leads to if the call follows links."""
        if path.startswith((b"/proc/", b"/dev/fd/")):
            base, path = _magic(path)
        if not path.startswith(b"/"):
            start = os.readlink(b"/proc/%d/%s" % (process, base or b"cwd"))
            path = start + b"/" + path if path else start
        path = path.rstrip(b"/")
        folder, _, name = path.rpartition(b"/")
        if name in (b"", b".", b".."):
            real = self._folder(process, path or b"/")
        else:
            real = self._folder(process, folder or b"/").rstrip(b"/") + b"/" + name
        self._file.name(TREE if effect == calls.TREE else NAME, real)
        if effect == calls.FOLLOW:
            self._follow(process, real)

    def _follow(self, process: int, link: bytes) -> None:
        for _ in range(40):
            try:
                target = os.readlink(b"/proc/%d/root%s" % (process, link))
            except OSError:
                return
            folder, _, name = os.path.join(os.path.dirname(link), target).rstrip(b"/").rpartition(b"/")
            if name in (b"", b".", b".."):
                return  # a directory: nothing is opened for writing there
            link = self._folder(process, folder or b"/").rstrip(b"/") + b"/" + name
            self._file.name(NAME, link)

    def _folder(self, process: int, path: bytes) -> bytes:
        """The real path of a directory as a process sees it. Raises OSError."""
        now, known = time.monotonic(), self._known.get((process, path))
        if known and now - known[0] < FRESH_SECONDS:
            return known[1]
        if len(self._known) > 10_000:
            self._known.clear()
        top = os.open(b"/proc/%d/root" % process, _PATH_ONLY)
        try:
            found = self._memory.open_in(top, path)
        finally:
            os.close(top)
        try:
            real = os.readlink(b"/proc/self/fd/%d" % found)
        finally:
            os.close(found)
        self._known[process, path] = (now, real)
        return real


class _Memory:
    """Reads the memory of other processes, and opens directories as they see them."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._read = self._libc.process_vm_readv
        self._buffer = ctypes.create_string_buffer(_MOST)
        self._address = ctypes.addressof(self._buffer)

    def text(self, process: int, address: int) -> bytes:
        """The text at an address, up to its NUL. Raises OSError."""
        found = self.data(process, address, _FIRST)
        if b"\0" not in found:
            found = self.data(process, address, _MOST)
        text, end, _ = found.partition(b"\0")
        if not end:
            raise OSError(errno.ENAMETOOLONG, "no path is that long")
        return text

    def data(self, process: int, address: int, most: int) -> bytes:
        """Up to `most` bytes: less where the memory ends. Raises OSError."""
        first = min(most, _PAGE - address % _PAGE)
        here = struct.pack("@PN", self._address, most)
        there = struct.pack("@PNPN", address, first, address + first, most - first)
        count = self._read(process, here, 1, there, 2 if most > first else 1, 0)
        if count < 0:
            raise OSError(ctypes.get_errno(), "the memory of the process cannot be read")
        return self._buffer.raw[:count] if count < 1_000 else ctypes.string_at(self._address, count)

    def number(self, process: int, address: int) -> int:
        """The 64-bit number at an address: the flags in a struct open_how. Raises OSError."""
        return int(struct.unpack("=Q", self.data(process, address, 8))[0])

    def socket(self, process: int, address: int, size: int) -> bytes:
        """The path of a Unix socket's address; empty if it is another one. Raises OSError."""
        found = self.data(process, address, min(size, 110))
        is_named = len(found) > 2 and struct.unpack_from("=H", found)[0] == _UNIX
        return found[2:].partition(b"\0")[0] if is_named else b""

    def open_in(self, top: int, path: bytes) -> int:
        """Open a directory as a process with this root sees it. Raises OSError."""
        how = struct.pack("=QQQ", _PATH_ONLY, 0, _IN_ROOT)
        found = int(self._libc.syscall(_OPENAT2, top, path, how, ctypes.c_size_t(24)))
        if found < 0:
            raise OSError(ctypes.get_errno(), "the directory cannot be opened")
        return found


def _of_whole_path(error: OSError) -> OSError:
    """A relative path may be short enough for the call, and too long for us with its directory before it."""
    return OSError(errno.EXDEV, "a path too long to look up") if error.errno == errno.ENAMETOOLONG else error


def _place(arguments: list[int], folder: int) -> bytes:
    """Where the path of a call begins, below /proc/PID."""
    return b"cwd" if folder == calls.HERE else _base(arguments[folder])


def _base(argument: int) -> bytes:
    """Where a path relative to a descriptor begins, below /proc/PID."""
    number = argument & 0xFFFFFFFF
    return b"fd/%d" % number if number < 0x80000000 else b"cwd"


def _magic(path: bytes) -> tuple[bytes, bytes]:
    """A path through the process's own descriptors or directories, as a base and what follows. Raises OSError."""
    parts = path.split(b"/", 5)
    if parts[1] == b"dev":
        return b"fd/" + parts[3], b"/".join(parts[4:])
    if parts[2].isdigit():
        raise OSError(errno.EXDEV, "a path through another process")
    if parts[2] in (b"self", b"thread-self") and len(parts) > 3:
        if parts[3] in (b"cwd", b"root"):
            return parts[3], b"/".join(parts[4:])
        if parts[3] == b"fd" and len(parts) > 4:
            return b"fd/" + parts[4], parts[5] if len(parts) > 5 else b""
    return b"", path
