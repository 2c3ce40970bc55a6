"""Content-addressed store of file contents that a run read or changed: for diffs and for undo.

Best effort: a step does not fail because a file is too long or the disk is full. When the store is too large, the least
recently used contents are removed. Contents are verified against their hash when read.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import xxhash

from runtime.atomic_file import write_whole

MAX_FILE_BYTES = 1024 * 1024
"""Longer contents are not stored."""
MAX_TOTAL_BYTES = 256 * 1024 * 1024
"""Approximate limit on the size of the whole store."""
_SWEEP_EVERY = 200


class ContentStore:
    """File contents in a directory that only its owner can read."""

    def __init__(self, directory: Path, max_file: int = MAX_FILE_BYTES, max_total: int = MAX_TOTAL_BYTES) -> None:
        self.directory = directory
        self.max_file, self.max_total = max_file, max_total
        self._written = 0

    def keep(self, content: bytes) -> bool:
        """Store a content under its hash, the one in its file stamp. False if it could not be stored."""
        if len(content) > self.max_file:
            return False
        path = self._path(xxhash.xxh3_128_hexdigest(content))
        try:
            if path.exists():
                os.utime(path)  # the sweep removes by time of last use
            else:
                self._write(path, content)
        except OSError:
            return False
        return True

    def get(self, digest: str) -> bytes | None:
        """The content with that hash; None if it is not stored (any more) or damaged."""
        try:
            content = self._path(digest).read_bytes()
        except OSError:
            return None
        return content if xxhash.xxh3_128_hexdigest(content) == digest else None

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
