"""The trace file of a call, written by the launcher: what its commands name. Standard library only.

It is a sequence of records, each ended by a NUL byte: `(` a command began, `)` it and all its processes have ended, `f`
a name, `t` a name with all that is below, `!` the trace is incomplete. Names are relative to the workspace.
All attempts of a call add to the same file. A record is written before the change it announces is made.
"""

from __future__ import annotations

import os

MAX_NAMES, MAX_BYTES = 200_000, 32 * 1024 * 1024
"""Names, and bytes of names, recorded per command; beyond that the trace is incomplete."""
BEGAN, ENDED, NAME, TREE, DOUBT = b"(", b")", b"f", b"t", b"!"


class TraceFile:
    """The names recorded so far, without repetitions."""

    def __init__(self, file: str, workspace: str) -> None:
        """Raises OSError."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        self._file, self._root = os.open(file, flags, 0o600), os.fsencode(workspace)
        self._names: set[tuple[bytes, bytes]] = set()
        self._bytes, self.is_whole = 0, True

    def doubt(self) -> None:
        """The trace is incomplete."""
        if self.is_whole:
            self.is_whole = False
            self.write(DOUBT)

    def name(self, kind: bytes, path: bytes) -> None:
        """Record an absolute path if it is below the workspace."""
        if not path.startswith(self._root + b"/"):
            if kind == TREE and (self._root + b"/").startswith(path + b"/"):
                self.doubt()  # the workspace itself is moved
            return
        record = kind, path[len(self._root) + 1 :]
        if record in self._names or not self.is_whole:
            return
        self._bytes += len(path)
        if len(self._names) >= MAX_NAMES or self._bytes > MAX_BYTES:
            self.doubt()
            return
        self._names.add(record)
        self.write(*record)

    def write(self, kind: bytes, name: bytes = b"") -> None:
        """Add a record. When that fails, none follows: without the last one the trace counts as incomplete."""
        if self._file < 0:
            return
        try:
            os.write(self._file, kind + name + b"\0")
        except OSError:
            self._file, self.is_whole = -1, False
