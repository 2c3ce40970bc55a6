"""Decides which of the changes between two snapshots a call has made, and what cannot be decided.

Where the processes of commands are traced (`activities.tracing`), a change belongs to the calls that name its path: one
that only others name is theirs, and one that nobody names was made by somebody else. Of a call that is not traced, what
changed while it ran is its own, unless another call names it; where several such calls ran, it is one of theirs.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from plansurvive.activities.provenance.scan import FOLDER_SIZE, Difference, Mark, WorkspaceScan
from plansurvive.activities.tracing.trace import Trace, read
from plansurvive.activities.workspace.file_names import native
from plansurvive.activities.workspace.paths import shown
from plansurvive.plans.text.lists import some

SLACK_NS = 20_000_000
"""Tolerance in ns: file timestamps are coarse and lag behind the system clock."""
MAX_TOLD = 10
MAX_OTHERS = 20
"""Other calls named for a path that one of several has changed."""


@dataclass(eq=False)
class Watch:
    """One call in progress."""

    key: str
    plan_id: str
    step_id: str
    root: str
    began: int
    before: WorkspaceScan = field(default_factory=WorkspaceScan)
    ended: int = 0
    resumed: bool = False
    """An earlier attempt took the first snapshot."""
    since: int = 0
    """When the first snapshot was taken."""
    beside: list[Watch] = field(default_factory=list)
    """Calls that overlapped with this one in time."""
    named: dict[str, Mark | None] = field(default_factory=dict)
    """Marks before the call of the paths that its text says it writes."""
    guarded: dict[str, Mark] = field(default_factory=dict)
    """Marks of protected files before the call."""
    lock: int = -1
    """Of its entry among the calls under way, see `activities.tracing.under_way`."""
    trace_file: Path | None = None
    """Where all that it does is traced; None if it does something in the worker's own process."""
    final: Trace | None = None
    """The trace when the call had ended."""

    def trace(self) -> Trace:
        """The trace so far."""
        if self.final is not None:
            return self.final
        return read(self.trace_file) if self.trace_file else Trace()

    def end(self) -> None:
        """The call has ended. A trace without its last record is incomplete: launcher or disk failed."""
        final = self.trace()
        self.ended, self.final = time.time_ns(), replace(final, is_doubtful=not final.is_whole)

    def ran_at(self, mark: Mark) -> bool:
        """Whether a path with this mark last changed while the call ran; always for a directory, of unknown ctime."""
        last = self.ended or time.time_ns()
        return mark[1] == FOLDER_SIZE or self.began - SLACK_NS <= mark[0] <= last + SLACK_NS


@dataclass(frozen=True)
class Attribution:
    """What a call has changed."""

    own: Difference
    shared: Mapping[str, list[str]]
    """Of these, what other calls may have changed instead, with the steps of those."""
    foreign: Sequence[str] = ()
    """Changed by nobody that is known."""

    @property
    def warning(self) -> str:
        """The warning about `foreign`; empty if there is nothing to say."""
        names = some(self.foreign, MAX_TOLD, shown)
        return f"changed while it ran, and not by it: {names}" if names else ""


def attribute(watch: Watch, found: Difference, after: WorkspaceScan, made: Collection[str] = ()) -> Attribution:
    """Decide about the changes between the snapshots of a call, without those of file tools.

    `made`: directories that file tools may have made.
    """
    others = [(other, other.trace()) for other in watch.beside] if any(found) else []
    mine = watch.trace()
    judge = _Judge(watch, mine, others, after.marks)
    own = Difference(*([path for path in paths if judge.is_own(path)] for paths in found))
    return Attribution(
        own,
        judge.perhaps_of,
        list(_changed_contents(watch, after, [path for path in judge.of_nobody if path not in made])),
    )


class _Judge:
    """Decides about one path at a time."""

    def __init__(
        self, watch: Watch, mine: Trace, others: Sequence[tuple[Watch, Trace]], after: Mapping[str, Mark]
    ) -> None:
        self._watch, self._mine, self._others = watch, mine, others
        self._before, self._after = watch.before.marks, after
        self._has_file = _with_links(mine, self._before, after)
        self._others_have = [_with_links(trace, self._before, after) for _, trace in others]
        self.perhaps_of: dict[str, list[str]] = {}
        self.of_nobody: list[str] = []

    def is_own(self, path: str) -> bool:
        """Whether the call has changed the path, or may have."""
        if self._has_file(path):
            return True
        if any(has(path) for has in self._others_have):
            return False
        if self._mine.is_whole:
            return self._is_foreign(path)
        others = list(self._candidates(path))
        was_between = self._watch.resumed and 0 < self._after.get(path, (0, 0, 0))[0] < self._watch.began - SLACK_NS
        if others or was_between:
            self.perhaps_of[path] = others
        return True

    def _is_foreign(self, path: str) -> bool:
        """Note a path that this call has not changed; returns False."""
        if all(trace.is_under_way for _, trace in self._others):
            self.of_nobody.append(path)
        return False

    def _candidates(self, path: str) -> Iterator[str]:
        names: dict[str, None] = {}
        for other, trace in self._others:
            if not trace.is_under_way and (path not in self._after or other.ran_at(self._after[path])):
                same = other.plan_id == self._watch.plan_id
                names[other.step_id if same else f"{other.plan_id}/{other.step_id}"] = None
        yield from list(names)[:MAX_OTHERS]


def _with_links(trace: Trace, before: Mapping[str, Mark], after: Mapping[str, Mark]) -> Callable[[str], bool]:
    """Whether a trace covers a path: also by another name of the same file, of which it is a hard link."""
    files = [{marks[name][2] for name in trace.names if name in marks} for marks in (before, after)]

    def has(path: str) -> bool:
        return trace.has(path) or any(
            path in marks and marks[path][1] != FOLDER_SIZE and marks[path][2] in numbers and path in before
            for marks, numbers in zip((before, after), files, strict=True)
        )

    return has


def _changed_contents(watch: Watch, after: WorkspaceScan, paths: Sequence[str]) -> Iterator[str]:
    """The paths whose content changed while the call ran; directories only if they are empty.

    A changed mark alone may be one of permissions, set through a descriptor that no trace sees.
    """
    holding = {path.rpartition("/")[0] for path in paths}
    for path in paths:
        old, new = watch.before.marks.get(path), after.marks.get(path)
        is_same = old is not None and new is not None and old[1:] == new[1:] and not watch.resumed
        if path not in holding and (not is_same or _written_since(f"{watch.root}/{native(path)}", watch.began)):
            yield path


def _written_since(path: str, began: int) -> bool:
    try:
        status = os.lstat(path)
    except OSError:
        return True
    return not stat.S_ISSOCK(status.st_mode) and status.st_mtime_ns >= began - SLACK_NS
