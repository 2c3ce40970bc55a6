"""Writes the files of a checkpoint into an empty directory.

The directory is new and of this plan alone; still, what a checkpoint says is checked: no path leads out of it, parents
come first, and links are made last, so that nothing is written through one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plansurvive.features.hosts.listing import FAILED, MAX_FILES
from plansurvive.features.hosts.packing import DIGEST, KIND, MODE, MTIME, PARTS, SIGNATURE, SIZE, Claim, Row
from plansurvive.plans.errors import ToolError

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def rows_of(found: Any) -> dict[str, Row]:
    """The rows of a checkpoint. Raises ToolError CHECKPOINT_FAILED for what no checkpoint of ours contains."""
    if not isinstance(found, dict) or len(found) > MAX_FILES:
        raise _damaged("its list of files")
    directories = {""}
    for path, row in found.items():
        names = path.split("/")
        parent = "/".join(names[:-1])
        if parent not in directories or not all(names) or {".", ".."} & set(names) or "\0" in path:
            raise _damaged(f"the path {path[:200]!r}")
        if not isinstance(row, list) or len(row) != SIGNATURE or row[KIND] not in ("file", "directory", "link"):
            raise _damaged(f"the row of {path[:200]!r}")
        if row[KIND] == "directory":
            directories.add(path)
    return {path: [*row, []] for path, row in found.items()}


@dataclass(frozen=True)
class Unpacker:
    """Writes the rows of a checkpoint below `root`, and gives each file the signature that it has there."""

    root: Path
    rows: Mapping[str, Row]

    def unpack(self, packs: Sequence[Claim], get: Callable[[Claim], bytes]) -> None:
        """Write everything; each pack is read once. Raises OSError, or what reading raises."""
        pieces: dict[int, list[tuple[str, int, int, int]]] = {}
        for path, row in self.rows.items():
            if row[KIND] == "directory":
                self._at(path).mkdir(0o700)
            elif row[KIND] == "file":
                os.close(os.open(self._at(path), _NEW, 0o600))
                start = 0
                for pack, offset, length in row[PARTS]:
                    pieces.setdefault(pack, []).append((path, start, offset, length))
                    start += length
                if start != row[SIZE]:
                    raise _damaged(f"the length of {path[:200]!r}")
        for pack, wanted in sorted(pieces.items()):
            self._write(get(packs[pack]), wanted)
        self._finish()

    def _write(self, data: bytes, wanted: Sequence[tuple[str, int, int, int]]) -> None:
        for path, start, offset, length in wanted:
            piece = data[offset : offset + length]
            if len(piece) != length:
                raise _damaged(f"the content of {path[:200]!r}")
            descriptor = os.open(self._at(path), os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            with os.fdopen(descriptor, "wb", buffering=0) as file:
                file.seek(start)
                view = memoryview(piece)
                while view:
                    view = view[file.write(view) or 0 :]

    def _finish(self) -> None:
        """Links, modes and times; the innermost directories first, as writing into one changes its time."""
        for path, row in reversed([*self.rows.items()]):
            at = self._at(path)
            if row[KIND] == "link":
                at.symlink_to(row[DIGEST])
                continue
            os.utime(at, ns=(row[MTIME], row[MTIME]))
            at.chmod(row[MODE] & 0o777)
            if row[KIND] == "file":
                found = at.lstat()
                row[SIGNATURE] = [found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]

    def _at(self, path: str) -> Path:
        return self.root / path


def _damaged(what: str) -> ToolError:
    return ToolError(FAILED, f"the checkpoint is damaged: {what} cannot be restored")
