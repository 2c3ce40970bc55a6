"""Content-addressed store of file contents that a run read or changed: for diffs and for undo.

Best effort: a step does not fail because a file is too long or the disk is full. When the store is too large, the least
recently used contents are removed. Contents are encrypted if there are keys, and verified against their hash when read.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import xxhash

from plansurvive.runtime.base.atomic_file import write_whole
from plansurvive.runtime.errors import Unauthentic
from plansurvive.runtime.sealing import UNSEALED, Sealing

MAX_FILE_BYTES = 1024 * 1024
"""Longer contents are not stored."""
MAX_TOTAL_BYTES = 256 * 1024 * 1024
"""Approximate limit on the size of the whole store."""
_SWEEP_EVERY = 200


class ContentStore:
    """File contents in a directory that only its owner can read."""

    def __init__(
        self,
        directory: Path,
        max_file: int = MAX_FILE_BYTES,
        max_total: int = MAX_TOTAL_BYTES,
        sealing: Sealing = UNSEALED,
    ) -> None:
        """`rest` encrypts contents and their names."""
        self.directory, self._sealing = directory, sealing
        self.max_file, self.max_total = max_file, max_total
        self._written = 0

    def keep(self, content: bytes) -> bool:
        """Store a content under its hash, the one in its file stamp. False if it could not be stored."""
        if len(content) > self.max_file:
            return False
        name, data = self._sealing.file_of(xxhash.xxh3_128_hexdigest(content), content)
        path = self._path(name)
        try:
            if path.exists():
                os.utime(path)  # the sweep removes by time of last use
            else:
                self._write(path, data)
        except OSError:
            return False
        return True

    def get(self, digest: str) -> bytes | None:
        """The content with that hash; None if it is not stored (any more) or damaged."""
        for key, name in self._sealing.names(digest):
            with suppress(OSError, Unauthentic):
                content = self._sealing.content(key, self._path(name).read_bytes())
                if xxhash.xxh3_128_hexdigest(content) == digest:
                    return content
        return None

    def drop(self, digest: str) -> bool:
        """Remove a content that turned out to be damaged, so that it can be stored again. False: it was not there."""
        found = False
        for _, name in self._sealing.names(digest):
            with suppress(OSError):
                self._path(name).unlink()
                found = True
        return found

    def _path(self, digest: str) -> Path:
        return self.directory / digest[:2] / (digest[2:] or "-")

    def _write(self, path: Path, content: bytes) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(path, content, durable=False)  # a crash may leave it damaged; `get` checks the hash
        self._written += 1
        if self._written % _SWEEP_EVERY == 0:
            self._sweep()

    def _sweep(self) -> None:
        """Remove the least recently used contents until the rest fits."""
        found = []
        for path in self.directory.glob("??/*"):
            with suppress(OSError):
                status = path.stat()
                found.append((status.st_mtime, status.st_size, path))
        total = 0
        for _, size, path in sorted(found, reverse=True):
            total += size
            if total > self.max_total:
                path.unlink(missing_ok=True)
