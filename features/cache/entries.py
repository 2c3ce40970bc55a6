"""What is kept of a call for later runs, and in what another call differs from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import AwareDatetime, Field

from plansurvive.features.cache.keys import CallKey
from plansurvive.features.cache.model import MAX_DIFFERENCES, CacheNote, Difference
from plansurvive.plans.file_stamps import Stamp
from plansurvive.plans.large_value import LargeValue
from plansurvive.plans.model import Value

MAX_FILES = 5_000
"""Files that a call may read, and files that it may leave, for its result to be kept."""
_SHOWN = 16
"""Digits of a file's hash that are shown."""


class Output(Value):
    """A file or directory that the call left."""

    path: str = Field(description="Relative to the workspace.")
    kind: Literal["file", "directory"] = "file"
    hash: str = Field(default="", description="xxh3-128 of the content: its name in the store.")
    sha256: str = Field(default="", description="Of the content.")
    size: int = Field(default=0, ge=0, description="Bytes.")
    mode: int = Field(default=0o644, ge=0, le=0o777, description="Permissions.")
    known: bool = Field(default=True, description="The run knows its content, and may edit it.")


class Entry(Value):
    """The result of a call, and all that it depended on."""

    key: str = Field(description="`CallKey.name`.")
    tool: str
    environment: str
    arguments: dict[str, str]
    reads: dict[str, Stamp | None] = Field(default_factory=dict, description="Files read; null: there was none.")
    listed: bool = Field(default=False, description="`reads` are all files that the step's patterns fit.")
    noted: list[str] = Field(default_factory=list, description="Files whose agents.md apply.")
    outputs: list[Output] = Field(default_factory=list)
    value: Any = None
    large: LargeValue | None = None
    text: str = Field(default="", description="xxh3-128 of the JSON text of `large`: its name in the store.")
    plan_id: str
    step_id: str
    made: AwareDatetime

    @property
    def place(self) -> str:
        """PLAN/STEP."""
        return f"{self.plan_id}/{self.step_id}"[:400]


def same_files(before: Mapping[str, Stamp | None], now: Mapping[str, Stamp | None]) -> bool:
    """Whether all files are the same."""
    return before.keys() == now.keys() and all(_is_same(before[path], now[path]) for path in before)


def compared(entry: Entry, key: CallKey, now: Mapping[str, Stamp | None]) -> CacheNote:
    """In what a call differs from an earlier one. `now`: the earlier one's files as they are, and those listed."""
    found = list(_differences(entry, key, now))
    return CacheNote(
        why="changed" if found else "",
        compared=entry.place,
        differences=found[:MAX_DIFFERENCES],
        more=len(found[MAX_DIFFERENCES:]),
    )


def _differences(entry: Entry, key: CallKey, now: Mapping[str, Stamp | None]) -> list[Difference]:
    found = [Difference(what="tool")] if entry.tool != key.tool else []
    if entry.environment != key.environment:
        found.append(Difference(what="environment"))
    names = dict.fromkeys([*entry.arguments, *key.arguments])
    changed = [name for name in names if entry.arguments.get(name) != key.arguments.get(name)]
    found += [Difference(what="argument", name=name[:4_000]) for name in changed]
    for path in sorted({*entry.reads, *now}):
        before, after = entry.reads.get(path), now.get(path)
        if not _is_same(before, after):
            found.append(Difference(what="file", name=path[:4_000], before=_shown(before), after=_shown(after)))
    return found


def _is_same(before: Stamp | None, now: Stamp | None) -> bool:
    return before is now is None or (before is not None and now is not None and before.is_same_as(now))


def _shown(stamp: Stamp | None) -> str:
    return stamp.hash[:_SHOWN] if stamp else ""
