"""Attributes file changes to calls: snapshots the workspace before and after an opaque tool and journals the diff.

Concurrent steps are told apart as far as possible: what this worker's file tools wrote is theirs; a file that changed
while two opaque calls ran is recorded for each whose snapshots saw the change, marked as shared. All attempts of a call
count as one: the first snapshot is kept on disk until the call has ended, across crashes of the worker. Changes by
workers in other processes are not marked as shared.
"""

from __future__ import annotations

import asyncio
import hashlib
import marshal
import threading
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import xxhash

from activities.provenance.declared_writes import named_by
from activities.provenance.journal import Journal
from activities.provenance.known_states import KnownStates, mark_at
from activities.provenance.path_state import kept_state, state_of
from activities.provenance.protected_files import guarded, running_later, warning
from activities.provenance.scan import FOLDER as FOLDER_SIZE
from activities.provenance.scan import MAX_ENTRIES, Difference, Mark, WorkspaceScan, look
from activities.tools.tool import ToolContext
from activities.workspace.file_names import native
from plans.errors import ToolError
from plans.file_stamps import SAMPLED_FROM, Stamp
from plans.files.name_patterns import DEFAULT, ProtectedNames
from plans.files.undo import FOLDER, CallChanges, FileChange

MAX_LISTED = 500
"""Changed paths per call reported to the run."""
MAX_KEPT = 5_000
"""Changed paths per call stored in the journal."""
SLACK_NS = 20_000_000
"""Tolerance in ns: file timestamps are coarse and lag behind the system clock."""

Undo = Literal["off", "files", "full"]


@dataclass(eq=False)
class _Watch:
    """One call in progress."""

    key: str
    root: str
    before: WorkspaceScan
    began: int
    ended: int = 0
    resumed: bool = False
    """An earlier attempt took the first snapshot."""
    beside: list[_Watch] = field(default_factory=list)
    """Calls that overlapped with this one in time."""
    named: dict[str, Mark | None] = field(default_factory=dict)
    """Marks before the call of the paths that its text says it writes."""
    guarded: dict[str, Mark] = field(default_factory=dict)
    """Marks of protected files before the call."""


class Watcher:
    """Tracks the file changes of one worker's calls. `state` is the worker's state directory."""

    def __init__(
        self, state: Path, undo: Undo = "files", most: int = MAX_ENTRIES, names: ProtectedNames = DEFAULT
    ) -> None:
        self.journal = Journal(state / "changes")
        self._state, self._looks, self._undo, self._most, self._names = state, state / "looks", undo, most, names
        self._lock = threading.Lock()
        self._active: list[_Watch] = []
        self._written: dict[tuple[str, str], Mark] = {}
        self._known = KnownStates()

    @asynccontextmanager
    async def watching(self, context: ToolContext, args: dict[str, Any]) -> AsyncIterator[None]:
        """Snapshot before and after; adds the changes to the context, also when the call fails."""
        watch = await asyncio.to_thread(self._begin, context, args)
        done = False
        try:
            yield
            done = True
        finally:
            await asyncio.to_thread(self._end, watch, context)
            if done:
                self.forget(context.call.key)

    def read(self, context: ToolContext) -> None:
        """A read-only tool has finished: store the files read, so that later changes can be shown and undone."""
        self._keep(context, context.files_read)

    def wrote(self, context: ToolContext) -> None:
        """A file tool has finished: its writes are its own, and stored so that later changes can be undone."""
        self._keep(context, context.files_written)
        with self._lock:
            if not any(watch.root == context.workspace.root for watch in self._active):
                return
        for path in context.files_written:
            mark = mark_at(context.workspace, path)
            if mark is not None:
                self._written[context.workspace.root, path] = mark

    def forget(self, key: str) -> None:
        """The call has ended, with no attempt to follow: delete its first snapshot."""
        self._look_file(key).unlink(missing_ok=True)

    def _begin(self, context: ToolContext, args: dict[str, Any]) -> _Watch:
        workspace, key = context.workspace, context.call.key
        began = time.time_ns()
        try:
            now = look(workspace.root, str(self._state), self._most, self._names)
        except OSError as error:
            raise ToolError("NOT_FOUND", f"the workspace {workspace.root} cannot be read: {error.strerror}") from None
        earlier = self._load(key)
        watch = _Watch(key, workspace.root, earlier or now, began, resumed=earlier is not None)
        watch.named = {path: mark_at(workspace, path) for path in named_by(context.tool, args, workspace)}
        context.protected = [f"{workspace.root}/{native(path)}" for path in (*now.protected, *now.sockets)]
        context.protected += self._names.files_below(workspace.root)
        watch.guarded = guarded(workspace.root, now.protected)
        if self._undo == "full":
            self._keep(context, now.marks)
        self._keep(context, watch.named)
        if earlier is None:
            self._save(key, now)
        with self._lock:
            watch.beside = [other for other in self._active if other.root == watch.root]
            for other in watch.beside:
                other.beside.append(watch)
            self._active.append(watch)
        return watch

    def _end(self, watch: _Watch, context: ToolContext) -> None:
        with self._lock:
            self._active.remove(watch)
            watch.ended = time.time_ns()
        try:
            after = look(watch.root, str(self._state), self._most, self._names)
        except OSError as error:
            return context.warn(f"the changes of the call are unknown: the workspace cannot be read ({error.strerror})")
        if text := warning(watch.guarded, guarded(watch.root, after.protected)):
            context.warn(text)
        difference = self._difference(watch, after, context)
        if text := running_later(watch.root, [*difference.created, *difference.changed], self._names):
            context.warn(text)
        self._record(watch, after, difference, context)
        with self._lock:
            if not self._active:
                self._written.clear()
        return None

    def _difference(self, watch: _Watch, after: WorkspaceScan, context: ToolContext) -> Difference:
        complete = watch.before.complete and after.complete
        if not complete:
            context.warn("the workspace is too large to track; only files named in the command are listed")
        found = watch.before.difference(after) if complete else Difference([], [], [])
        theirs = {path for root, path in self._written if root == watch.root}
        created = [path for path in found.created if not (path in theirs and self._is_written(watch, path, after))]
        changed = [path for path in found.changed if not (path in theirs and self._is_written(watch, path, after))]
        for path, mark in watch.named.items():
            now = mark_at(context.workspace, path)
            if now is None or now == mark or (path in after.marks and complete):
                continue
            (changed if mark else created).append(path)  # in a directory that is not scanned
            after.marks[path] = now
        return Difference(created, changed, found.deleted)

    def _is_written(self, watch: _Watch, path: str, after: WorkspaceScan) -> bool:
        return self._written.get((watch.root, path)) == after.marks[path]

    def _record(self, watch: _Watch, after: WorkspaceScan, found: Difference, context: ToolContext) -> None:
        changes: list[FileChange] = []
        paths = [*found.created, *found.changed]
        for path in paths[:MAX_KEPT]:
            change = self._changed(watch, path, after.marks[path], context)
            if change is not None:
                changes.append(change)
        for path in found.deleted[: max(0, MAX_KEPT - len(changes))]:
            before = self._known.of(watch.root, path, watch.before.marks[path])
            changes.append(FileChange(path=path, kind="deleted", before=before, after="", shared=bool(watch.beside)))
        more = max(0, len(paths) + len(found.deleted) - max(MAX_KEPT, len(changes)))
        if self._undo != "off" and (changes or more):
            self._write_down(context, changes, more)
        _report(context, changes, more, after.marks)

    def _changed(self, watch: _Watch, path: str, mark: Mark, context: ToolContext) -> FileChange | None:
        """The change of a new or modified path; None if its content turns out to be the same."""
        earlier = watch.before.marks.get(path) or watch.named.get(path)
        before = self._known.of(watch.root, path, earlier) if earlier else ""
        keeping, preimages = self._undo != "off", context.effects.preimages
        after = kept_state(context.workspace, path, preimages) if keeping else state_of(context.workspace, path)
        self._known.remember(watch.root, path, mark, after)
        if before is not None and before == after and path not in watch.named:
            return None
        shared = any(_was_within(mark, other) for other in watch.beside) or (
            watch.resumed and 0 < mark[0] < watch.began - SLACK_NS
        )
        return FileChange(
            path=path, kind="changed" if earlier else "created", before=before, after=after, shared=shared
        )

    def _write_down(self, context: ToolContext, changes: list[FileChange], more: int) -> None:
        call = context.call
        kept = self.journal.write(
            CallChanges(
                key=call.key,
                plan_id=call.plan_id,
                step_id=call.step_id,
                tool=context.tool,
                workspace=context.workspace.root,
                time=datetime.now(UTC),
                changes=changes,
                more=more,
            )
        )
        if not kept:
            context.warn("the changes of the call could not be recorded, so they cannot be undone; check the disk")

    def _keep(self, context: ToolContext, paths: Iterable[str]) -> None:
        if self._undo != "off":
            self._known.keep(context.workspace, paths, context.effects.preimages)

    def _look_file(self, key: str) -> Path:
        return self._looks / hashlib.sha256(key.encode()).hexdigest()[:32]

    def _save(self, key: str, before: WorkspaceScan) -> None:
        data = marshal.dumps((before.marks, before.protected, before.complete))
        with suppress(OSError):  # a later attempt then starts from a snapshot of its own
            self._looks.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._look_file(key).write_bytes(xxhash.xxh3_128_digest(data) + data)

    def _load(self, key: str) -> WorkspaceScan | None:
        """The first snapshot of an earlier attempt; verified by hash, because marshal must not read damaged data."""
        with suppress(OSError, ValueError, EOFError, TypeError):
            data = self._look_file(key).read_bytes()
            if xxhash.xxh3_128_digest(data[16:]) == data[:16]:
                return WorkspaceScan(*marshal.loads(data[16:]))  # noqa: S302
        return None


def _report(context: ToolContext, changes: list[FileChange], more: int, marks: dict[str, Mark]) -> None:
    """Add the changes to the context, for the run."""
    reported = list(_without_implied(changes))
    for change in reported[:MAX_LISTED]:
        if change.kind == "deleted":
            context.files_deleted.append(change.path)
        else:
            context.files_written.setdefault(change.path, _stamp(change, marks[change.path]))
        if change.shared:
            context.files_shared.append(change.path)
    context.more_files += more + len(reported[MAX_LISTED:])


def _without_implied(changes: list[FileChange]) -> Iterator[FileChange]:
    """Omit directories with a created or deleted entry of their own: the entry implies them."""
    holding = {(change.path.rpartition("/")[0], change.kind) for change in changes}
    for change in changes:
        is_folder = FOLDER in (change.before, change.after)
        if not is_folder or (change.path, change.kind) not in holding:
            yield change


def _stamp(change: FileChange, mark: Mark) -> Stamp | None:
    """A stamp for files the call created; files it modified must be read again before they are edited."""
    is_file = change.after and change.after != FOLDER and ":" not in change.after
    if change.kind != "created" or change.shared or not is_file or mark[1] > SAMPLED_FROM:
        return None
    return Stamp(hash=change.after or "", size=mark[1])


def _was_within(mark: Mark, other: _Watch) -> bool:
    """Whether the path last changed while the other call ran; always true for a directory, whose ctime is unknown."""
    last = other.ended or time.time_ns()
    return mark[1] == FOLDER_SIZE or other.began - SLACK_NS <= mark[0] <= last + SLACK_NS
