"""Attributes file changes to calls: snapshots the workspace before and after an opaque tool and journals the diff.

Concurrent steps are told apart as far as possible: what this worker's file tools wrote is theirs, and of commands the
processes are traced (`activities.provenance.attribution` decides). Where that is not possible, a file that changed
while two opaque calls ran is recorded for each whose snapshots saw the change, marked as shared. All attempts of a call
count as one: the first snapshot and the trace are kept on disk until the call has ended, across crashes of the worker.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from plansurvive.activities.provenance.attribution import SLACK_NS, Attribution, Watch, attribute
from plansurvive.activities.provenance.journal import CHANGES, Journal
from plansurvive.activities.provenance.known_states import KnownStates, mark_at
from plansurvive.activities.provenance.path_state import MAX_HASHED, kept_state, state_of
from plansurvive.activities.provenance.protected_files import guarded, out_of_sight, running_later, warning
from plansurvive.activities.provenance.scan import MAX_ENTRIES, Difference, FirstLook, Looks, Mark, WorkspaceScan, look
from plansurvive.activities.provenance.shell_writes import written_by_shell
from plansurvive.activities.tools.tool import ToolContext
from plansurvive.activities.tracing import under_way
from plansurvive.activities.workspace.file_names import native, visible
from plansurvive.activities.workspace.workspace import Workspace
from plansurvive.plans.errors import ToolError
from plansurvive.plans.file_stamps import Stamp
from plansurvive.plans.files.changes import FOLDER, CallChanges, FileChange, followed
from plansurvive.plans.files.name_patterns import DEFAULT, ProtectedNames
from plansurvive.plans.files.python_writes import written_by_python

MAX_NAMED = 200


def named_by(tool: str, args: dict[str, Any], workspace: Workspace) -> list[str]:
    """Paths written, relative to the workspace; those outside it are omitted."""
    found: dict[str, None] = {}
    for path in _texts(tool, args)[:MAX_NAMED]:
        try:
            found.setdefault(workspace.relative(visible(path)))
        except ToolError:
            continue
    found.pop(".", None)
    return list(found)


def _texts(tool: str, args: dict[str, Any]) -> list[str]:
    if tool == "run_command" and isinstance(args.get("command"), str):
        folder = args.get("cwd") or "."
        return [path if path.startswith("/") else f"{folder}/{path}" for path in written_by_shell(args["command"])]
    if tool == "run_python" and isinstance(args.get("code"), str):
        found = written_by_python(args["code"])
        return [*found.paths, *written_by_shell(*found.commands)]
    return []


MAX_LISTED = 500
"""Changed paths per call reported to the run."""
MAX_KEPT = 5_000
"""Changed paths per call stored in the journal."""
TRACED = ("run_command", "run_python")
"""Tools that change files in the processes of a command only."""

Undo = Literal["off", "files", "full"]


class Watcher:
    """Tracks the file changes of one worker's calls. `state` is the worker's state directory."""

    def __init__(
        self,
        state: Path,
        undo: Undo = "files",
        most: int = MAX_ENTRIES,
        names: ProtectedNames = DEFAULT,
        *,
        trace: bool = True,
    ) -> None:
        """`trace`: tell concurrent commands apart by their processes, where the kernel can."""
        self.journal = Journal(state / CHANGES)
        self._state, self._looks, self._undo, self._most, self._names = state, Looks(state), undo, most, names
        self._trace, self._lock = trace, threading.Lock()
        self._unrecorded: list[Watch] = []
        """Calls in progress, and those that have ended without recording their changes: whose the marks below are."""
        self._written: dict[tuple[str, str], Mark | None] = {}
        """What file tools left while calls were watched: the mark, None for a file that they deleted."""
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

    def has_entered(self, context: ToolContext) -> bool:
        """Whether `enter` has nothing more to note of the plan."""
        call = context.call
        return self.journal.knows(call.plan_id, context.workspace.root, call.directory)

    def enter(self, context: ToolContext) -> None:
        """A tool that may change files is about to be called."""
        self.journal.enter(context.call.plan_id, context.workspace.root, context.call.directory)

    def read(self, context: ToolContext) -> None:
        """A read-only tool has finished: store the files read, so that later changes can be shown and undone."""
        self._keep(context, context.files_read)

    def wrote(self, context: ToolContext) -> None:
        """A file tool has finished: its writes are its own, and stored so that later changes can be undone."""
        self._keep(context, context.files_written)
        with self._lock:
            if not any(watch.root == context.workspace.root for watch in self._unrecorded):
                return
        for path in context.files_written:
            mark = mark_at(context.workspace, path)
            if mark is not None:
                self._written[context.workspace.root, path] = mark
        for path in context.files_deleted:
            self._written[context.workspace.root, path] = None

    def forget(self, key: str) -> None:
        """The call has ended, with no attempt to follow: delete its first snapshot and its trace."""
        self._looks.forget(key)

    def _begin(self, context: ToolContext, args: dict[str, Any]) -> Watch:
        workspace, call = context.workspace, context.call
        watch = Watch(call.key, call.plan_id, call.step_id, workspace.root, time.time_ns())
        file = self._looks.trace_file(call.key)
        watch.trace_file = file if self._trace and context.tool in TRACED else None
        watch.lock = under_way.begin(file, watch.root)
        with self._lock:  # before the snapshot: another call may end during it
            watch.beside = [other for other in self._unrecorded if other.root == watch.root and not other.ended]
            for other in watch.beside:
                other.beside.append(watch)
            self._unrecorded.append(watch)
        try:
            self._look_before(watch, context, args)
        except BaseException:
            self._leave(watch)
            self._close(watch)
            raise
        return watch

    def _look_before(self, watch: Watch, context: ToolContext, args: dict[str, Any]) -> None:
        workspace = context.workspace
        try:
            now = look(workspace.root, str(self._state), self._most, self._names)
        except OSError as error:
            text = f"the workspace {workspace.root} cannot be read: {error.strerror}; put it back, and resume the plan"
            raise ToolError("NOT_FOUND", text) from None
        named = {path: mark_at(workspace, path) for path in named_by(context.tool, args, workspace)}
        earlier = self._looks.load(watch.key)
        first = earlier or FirstLook(now, named)
        watch.before, watch.named, watch.resumed = first.before, named | dict(first.named), earlier is not None
        watch.since = min(watch.began, self._looks.taken(watch.key) or watch.began)
        context.protected = [f"{workspace.root}/{native(path)}" for path in (*now.protected, *now.sockets)]
        context.protected += self._names.files_below(workspace.root)
        context.trace = str(watch.trace_file or "")
        watch.guarded = guarded(workspace.root, now.protected)
        if self._undo == "full":
            self._keep(context, now.marks)
        self._keep(context, watch.named)
        if earlier is None:
            known = self._known.known(watch.root, now.marks, named)
            self._looks.save(watch.key, FirstLook(now, named, known))
        else:  # perhaps of another process, which has died
            self._known.recall(watch.root, first.states, first.before.marks, first.named)

    def _leave(self, watch: Watch) -> None:
        with self._lock:
            watch.end()

    def _close(self, watch: Watch) -> None:
        under_way.end(watch.lock)
        with self._lock:
            self._unrecorded.remove(watch)
            if not self._unrecorded:
                self._written.clear()
                self._known.forget_earlier()

    def _end(self, watch: Watch, context: ToolContext) -> None:
        try:
            self._compare(watch, context)
        finally:
            self._close(watch)

    def _compare(self, watch: Watch, context: ToolContext) -> None:
        self._leave(watch)
        try:
            after = look(watch.root, str(self._state), self._most, self._names)
        except OSError as error:
            return context.warn(f"the changes of the call are unknown: the workspace cannot be read ({error.strerror})")
        if text := warning(watch.guarded, guarded(watch.root, after.protected)):
            context.warn(text)
        if text := out_of_sight(self._names, watch.trace().names):
            context.warn(text)
        difference = self._difference(watch, after, context)
        if text := running_later(watch.root, [*difference.created, *difference.changed], self._names):
            context.warn(text)
        found = attribute(watch, difference, after, _folders_above(self._of_file_tools(watch.root)))
        if found.foreign:
            found = replace(found, foreign=self._of_strangers(watch, found.foreign, context))
        if found.warning:
            context.warn(found.warning)
        return self._record(watch, after, found, context)

    def _of_strangers(self, watch: Watch, paths: Sequence[str], context: ToolContext) -> list[str]:
        """Those that no step of any worker process with this state directory has changed, as far as is known."""
        named = {f"{watch.root}/{path}": path for path in paths}
        # In this order: a call that ends meanwhile is in the journal before it is no longer under way.
        left = under_way.not_of_others(self._looks.trace_file(watch.key), named)
        left = self.journal.unnamed_since(watch.since - SLACK_NS, left)
        with suppress(ToolError):
            effects = context.effects.log.since((watch.since - SLACK_NS) / 1e9) if left else []
            left -= {f"{effect.workspace}/{effect.path}" for effect in effects}
        return [path for absolute, path in named.items() if absolute in left]

    def _difference(self, watch: Watch, after: WorkspaceScan, context: ToolContext) -> Difference:
        """The changes between the snapshots, without those of file tools."""
        complete = watch.before.complete and after.complete
        if not complete:
            context.warn("the workspace is too large to track; only files named in the command are listed")
        found = watch.before.difference(after) if complete else Difference([], [], [])
        theirs, trace = self._of_file_tools(watch.root), watch.trace()
        created, changed, deleted = (
            [path for path in paths if path not in theirs or theirs[path] != after.marks.get(path)] for paths in found
        )
        for path, mark in watch.named.items():
            now = mark_at(context.workspace, path)
            if now is None or now == mark or (path in after.marks and complete):
                continue
            if trace.is_whole and not trace.has(path):
                continue  # another spelling of a path, or not written at all
            (changed if mark else created).append(path)  # in a directory that is not scanned
            after.marks[path] = now
        return Difference(created, changed, deleted)

    def _of_file_tools(self, root: str) -> dict[str, Mark | None]:
        """The marks that file tools left in a workspace."""
        return {path: mark for (top, path), mark in list(self._written.items()) if top == root}

    def _record(self, watch: Watch, after: WorkspaceScan, found: Attribution, context: ToolContext) -> None:
        changes: list[FileChange] = []
        paths, deleted = [*found.own.created, *found.own.changed], found.own.deleted
        for path in paths[:MAX_KEPT]:
            change = self._changed(watch, path, after.marks[path], found, context)
            if change is not None:
                changes.append(change)
        for path in deleted[: max(0, MAX_KEPT - len(changes))]:
            before = self._known.of(watch.root, path, watch.before.marks[path])
            changes.append(FileChange(path=path, kind="deleted", before=before, after="", **_doubt(found, path)))
        more = max(0, len(paths) + len(deleted) - max(MAX_KEPT, len(changes)))
        # An attempt may have ended and been recorded without its result reaching the plan: its first snapshot is gone.
        earlier = None if watch.resumed else self.journal.of_call(watch.plan_id, watch.key)
        if earlier is not None:
            changes, more = followed(earlier.changes, changes), max(more, earlier.more)
        if self._undo != "off" and (changes or more):
            self._write_down(watch, context, changes, more)
        _report(context, changes, more, after.marks)

    def _changed(
        self, watch: Watch, path: str, mark: Mark, found: Attribution, context: ToolContext
    ) -> FileChange | None:
        """The change of a new or modified path; None if its content turns out to be the same."""
        earlier = watch.before.marks.get(path) or watch.named.get(path)
        before = self._known.of(watch.root, path, earlier) if earlier else ""
        keeping, preimages = self._undo != "off", context.effects.preimages
        after = (
            kept_state(context.workspace, path, preimages) if keeping else state_of(context.workspace, path, MAX_HASHED)
        )
        self._known.remember(watch.root, path, mark, after)
        if before is not None and before == after and path not in watch.named:
            return None
        kind: Literal["changed", "created"] = "changed" if earlier else "created"
        return FileChange(path=path, kind=kind, before=before, after=after, **_doubt(found, path))

    def _write_down(self, watch: Watch, context: ToolContext, changes: list[FileChange], more: int) -> None:
        call = context.call
        kept = self.journal.write(
            CallChanges(
                key=call.key,
                plan_id=call.plan_id,
                step_id=call.step_id,
                tool=context.tool,
                workspace=context.workspace.root,
                began=datetime.fromtimestamp(watch.since / 1e9, UTC),
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


def _folders_above(paths: Iterable[str]) -> set[str]:
    return {path[:at] for path in paths for at, letter in enumerate(path) if letter == "/"}


def _doubt(found: Attribution, path: str) -> dict[str, Any]:
    """The fields of a FileChange that say whose it may be instead."""
    return {"shared": path in found.shared, "others": found.shared.get(path, [])}


def _report(context: ToolContext, changes: list[FileChange], more: int, marks: dict[str, Mark]) -> None:
    """Add the changes to the context, for the run."""
    reported = list(_without_implied(changes))
    for change in reported[:MAX_LISTED]:
        if change.kind == "deleted":
            context.files_deleted.append(change.path)
        else:
            context.files_written.setdefault(change.path, _stamp(change, marks.get(change.path)))
        if change.shared:
            context.files_shared.append(change.path)
            context.shared_with += [name for name in change.others if name not in context.shared_with]
    context.more_files += more + len(reported[MAX_LISTED:])


def _without_implied(changes: list[FileChange]) -> Iterator[FileChange]:
    """Omit directories with a created or deleted entry of their own: the entry implies them."""
    holding = {(change.path.rpartition("/")[0], change.kind) for change in changes}
    for change in changes:
        is_folder = FOLDER in (change.before, change.after)
        if not is_folder or (change.path, change.kind) not in holding:
            yield change


def _stamp(change: FileChange, mark: Mark | None) -> Stamp | None:
    """A stamp for files the call created; files it modified must be read again before they are edited."""
    is_file = change.after and change.after != FOLDER and ":" not in change.after
    if change.kind != "created" or change.shared or not is_file or mark is None:
        return None
    return Stamp(hash=change.after or "", size=mark[1], made=True)
