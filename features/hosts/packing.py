"""What a checkpoint holds: a row per name, and the contents of files in packs of a few MiB.

A content that an earlier checkpoint holds is not stored again; a file that has not been touched since is not even read.
New contents are put together in packs, so that a thousand small files are a few objects. A row is a JSON list:
`[kind, mode, mtime_ns, size, hash or target, parts, signature]`, a part `[pack, offset, length]`.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from plansurvive.features.hosts.listing import Found, too_large

PACK_BYTES = 4 * 1024 * 1024
MAX_PACKS = 400
"""Packs of small files that a checkpoint refers to at most; beyond that all of them are packed again."""
UNSETTLED_NS = 50_000_000
"""A file changed so shortly before it was read may change again without a new time: it is read again the next time."""
KIND, MODE, MTIME, SIZE, DIGEST, PARTS, SIGNATURE = range(7)
Claim = dict[str, str]
Row = list[Any]


class Packer:
    """Makes the rows of a checkpoint, and stores what is new."""

    def __init__(
        self, put: Callable[[bytes], Claim], known: Mapping[str, Row], packs: Sequence[Claim], most_bytes: int
    ) -> None:
        """`known`: the rows of the last checkpoint, which refer to `packs`; `most_bytes`: of all files together."""
        self._put, self._known, self._most = put, known, most_bytes
        self.packs: list[Claim | None] = list(packs)
        self._stored = {row[DIGEST]: row[PARTS] for row in known.values() if row[KIND] == "file"}
        self._open, self._length = list[bytes](), 0
        self.rows: dict[str, Row] = {}
        self.bytes = 0

    def add(self, found: Found) -> None:
        """Add a name. Raises ToolError CHECKPOINT_TOO_LARGE, and what storing raises."""
        mode, mtime = found.status.st_mode & 0o777, found.status.st_mtime_ns
        if found.kind != "file":
            self.rows[found.path] = [found.kind, mode, mtime, 0, found.target, [], []]
            return
        self.bytes += found.status.st_size
        if self.bytes > self._most:
            raise too_large(f"more than {self._most // 1024 // 1024:,} MiB")
        known = self._known.get(found.path)
        if known is not None and known[KIND] == "file" and known[SIGNATURE] == found.signature:
            self.rows[found.path] = ["file", mode, mtime, *known[SIZE:]]
            return
        began = time.time_ns()
        try:
            digest, size, parts = self._content(found)
        except FileNotFoundError:
            return
        changed = max(mtime, found.status.st_ctime_ns)
        signature = found.signature if changed + UNSETTLED_NS < began else []
        self.rows[found.path] = ["file", mode, mtime, size, digest, parts, signature]

    def finish(self) -> list[Claim]:
        """Store the last pack; the claims of those in use, to which the parts refer now."""
        self._flush()
        used = sorted({part[0] for row in self.rows.values() for part in row[PARTS]})
        numbers = {pack: number for number, pack in enumerate(used)}
        for row in self.rows.values():
            row[PARTS] = [[numbers[pack], offset, length] for pack, offset, length in row[PARTS]]
        return [claim for pack in used if (claim := self.packs[pack]) is not None]

    def _content(self, found: Found) -> tuple[str, int, list[list[int]]]:
        with os.fdopen(found.open(), "rb", buffering=0) as file:
            head = _read(file.fileno())
            hasher = hashlib.sha256(head)
            if len(head) < PACK_BYTES:
                digest = hasher.hexdigest()
                if digest not in self._stored:
                    self._stored[digest] = [self._append(head)] if head else []
                return digest, len(head), self._stored[digest]
            size, parts = 0, list[list[int]]()
            while head:
                parts.append([self._pack(head), 0, len(head)])
                size += len(head)
                head = _read(file.fileno())
                hasher.update(head)
            return hasher.hexdigest(), size, parts

    def _append(self, content: bytes) -> list[int]:
        if self._length + len(content) > PACK_BYTES:
            self._flush()
        if not self._open:
            self.packs.append(None)
        offset = self._length
        self._open.append(content)
        self._length += len(content)
        return [self._number, offset, len(content)]

    @property
    def _number(self) -> int:
        """The pack that is being filled: the only one without a claim."""
        return self.packs.index(None)

    def _pack(self, content: bytes) -> int:
        self.packs.append(self._put(content))
        return len(self.packs) - 1

    def _flush(self) -> None:
        if self._open:
            self.packs[self._number] = self._put(b"".join(self._open))
            self._open, self._length = [], 0


def without_small(known: Mapping[str, Row], most_packs: int = MAX_PACKS) -> dict[str, Row]:
    """The rows to begin with: all, unless small files are spread over too many packs. Large files have their own."""
    packs = {part[0] for row in known.values() if row[SIZE] < PACK_BYTES for part in row[PARTS]}
    return {path: row for path, row in known.items() if len(packs) <= most_packs or row[SIZE] >= PACK_BYTES}


def plain(rows: Mapping[str, Row]) -> dict[str, Row]:
    """The rows without what tells of this machine: as they are stored and compared."""
    return {path: row[:SIGNATURE] for path, row in rows.items()}


def _read(descriptor: int) -> bytes:
    data = bytearray()
    while len(data) < PACK_BYTES and (piece := os.read(descriptor, PACK_BYTES - len(data))):
        data += piece
    return bytes(data)
