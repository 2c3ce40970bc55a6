"""What files held when a run read or changed them, by the hash of the content: for diffs, and for undoing.

Kept as well as can be: a content that is too long, or a full disk, is no reason for a step to fail, and the oldest
contents go first when there are too many. What is given back is proved by its hash.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import xxhash

from runtime.atomic_file import write_whole

MAX_FILE_BYTES = 1024 * 1024
"""Longest content that is kept."""
MAX_TOTAL_BYTES = 256 * 1024 * 1024
"""Kept of all contents together, about."""
_SWEEP_EVERY = 200


class ContentStore:
    """The contents in a directory, for its owner only."""

    def __init__(self, directory: Path, max_file: int = MAX_FILE_BYTES, max_total: int = MAX_TOTAL_BYTES) -> None:
        self.directory = directory
        self.max_file, self.max_total = max_file, max_total
        self._kept = 0

    def keep(self, content: bytes) -> bool:
        """Keep a content, under the hash that its stamp has. False when it cannot be kept."""
        if len(content) > self.max_file:
            return False
        path = self._path(xxhash.xxh3_128_hexdigest(content))
        try:
            if path.exists():
                os.utime(path)  # a sweep spares what was wanted lately
            else:
                self._write(path, content)
        except OSError:
            return False
        return True

    def get(self, digest: str) -> bytes | None:
        """The content of that hash, if it is still there."""
        try:
            content = self._path(digest).read_bytes()
        except OSError:
            return None
        return content if xxhash.xxh3_128_hexdigest(content) == digest else None

    def _path(self, digest: str) -> Path:
        return self.directory / digest[:2] / (digest[2:] or "-")

    def _write(self, path: Path, content: bytes) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(path, content, durable=False)  # `get` checks the hash
        self._kept += 1
        if self._kept % _SWEEP_EVERY == 0:
            self._sweep()

    def _sweep(self) -> None:
        """Remove what was wanted longest ago until the rest is small enough."""
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
