"""Reads the trace of a call: the names that its commands may have changed, and whether there can be others."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from plansurvive.activities.tracing.trace_file import BEGAN, DOUBT, ENDED, MAX_BYTES, TREE
from plansurvive.activities.workspace.file_names import visible

_MAX_READ = 4 * MAX_BYTES
"""Of all attempts together; what exceeds it makes the trace incomplete."""


@dataclass(frozen=True)
class Trace:
    """Names relative to the workspace, as a scan of it shows them."""

    names: frozenset[str] = frozenset()
    trees: frozenset[str] = frozenset()
    """Names that count with all that is below: they were renamed."""
    began: int = 0
    ended: int = 0
    is_doubtful: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether the commands have ended and changed nothing that is not named."""
        return self.began == self.ended > 0 and not self.is_doubtful

    @property
    def is_under_way(self) -> bool:
        """Whether all that was changed so far is named: true of a whole trace as well."""
        return self.began > 0 and not self.is_doubtful

    def has(self, path: str) -> bool:
        """Whether the commands may have changed this path."""
        if path in self.names or path in self.trees:
            return True
        while self.trees and "/" in path:
            path = path.rpartition("/")[0]
            if path in self.trees:
                return True
        return False


def read(file: Path) -> Trace:
    """The trace so far; an empty one if there is none."""
    try:
        with file.open("rb") as opened:
            data = opened.read(_MAX_READ + 1)
    except OSError:
        return Trace()
    *records, rest = data.split(b"\0")
    names = {_name(record) for record in records if record[:1] not in (BEGAN, ENDED, DOUBT)}
    trees = {_name(record) for record in records if record[:1] == TREE}
    began, ended = records.count(BEGAN), records.count(ENDED)
    is_doubtful = DOUBT in records or bool(rest) or len(data) > _MAX_READ
    return Trace(frozenset(names), frozenset(trees), began, ended, is_doubtful)


def _name(record: bytes) -> str:
    return visible(os.fsdecode(record[1:]))
