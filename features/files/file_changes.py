"""The activity `file_changes`: reports the files a plan changed, with diffs, and undoes the changes.

Changes by file tools are in the effect log, changes by commands in the journal. Undo restores each file under its lock,
only if it is still as the run left it, and only in the directory that the run worked in. If one is refused, nothing is
restored, unless the request says `partly`. Idempotent: files that are already restored are left alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from temporalio import activity
from temporalio.exceptions import ApplicationError

from plansurvive.activities.beating import beating
from plansurvive.activities.provenance.journal import Journal, of_change
from plansurvive.activities.provenance.path_state import content_of, put, state_at, state_of
from plansurvive.activities.workspace.allowed import WorkspaceRules
from plansurvive.activities.workspace.effect_log import Effect, Effects
from plansurvive.activities.workspace.locks import locked
from plansurvive.activities.workspace.text_diff import Bounds, content_diff
from plansurvive.activities.workspace.workspace import Workspace
from plansurvive.features.files.model import ChangesReport, ChangesRequest, Refusal, Restore, UndoCode
from plansurvive.features.files.undo_rules import decide_undo, is_of
from plansurvive.plans.directory import MOVED
from plansurvive.plans.errors import ToolError
from plansurvive.plans.files.changes import FOLDER, CallChanges, FileChange
from plansurvive.plans.flow.ids import of_call
from plansurvive.plans.model.identities import AGENT_PREFIX
from plansurvive.plans.signature import Signature

REFUSALS: Mapping[str, UndoCode] = {"NOT_KEPT": "NOT_KEPT", MOVED: "WORKSPACE_MOVED"}
"""What an error of a tool is called where it keeps a file from being restored; others are conflicts."""
MAX_COMPARED = 128 * 1024
DIFF = Bounds(lines=200, compared_bytes=MAX_COMPARED)
MAX_DIFF_BYTES = 256 * 1024
"""Limit on the total size of the diffs in a report."""
MAX_CHANGES = 5_000
"""Most changes in a report; the rest are only counted."""


@dataclass(frozen=True)
class FileChanges:
    """The activity, with the logs of this worker."""

    effects: Effects
    journal: Journal
    rules: WorkspaceRules | None = None
    """Which directories may be workspaces; None: any."""
    unproven: Callable[[Signature | None, str], str] | None = None
    """Why an undo does not count, if only signed ones do; empty if it counts. None: they need no signature."""
    kept: Callable[[str], bool] = lambda _: False
    """Whether a feature keeps what has changed in a directory itself: it is listed, and not undone."""

    @activity.defn(name="file_changes")
    async def file_changes(self, request: ChangesRequest) -> ChangesReport:
        """Report the changes of a plan; with `undo`, undo them. Raises ApplicationError with a code."""
        # Asked of the dry run before it as well: a signed undo that this refuses is used up, too.
        why = self.unproven(request.signature, request.message) if self.unproven is not None and request.undo else ""
        if why and not request.dry_run:
            text = f"only signed undos count here: {why}; set PLANS_DECISIONS=signed, with the worker's state directory"
            raise ApplicationError(text, type="UNSIGNED", non_retryable=True)
        try:
            async with beating():
                return await asyncio.to_thread(self.answer, request)
        except ToolError as error:
            raise ApplicationError(error.message, type=error.code, non_retryable=not error.retryable) from None

    def answer(self, request: ChangesRequest) -> ChangesReport:
        """As `file_changes`, synchronously. Raises ToolError EFFECTS_UNAVAILABLE or WORKSPACE_REFUSED."""
        calls = [call for call in self._all_calls(request) if not request.undo or not self.kept(call.workspace)]
        if self.rules is not None:
            for workspace in dict.fromkeys(call.workspace for call in calls):
                self.rules.check_recorded(workspace)
        if not request.undo:
            chosen = [call for call in calls if is_of(call.step_id, request.step_id)]
            return ChangesReport(calls=self._shown(chosen, request.diffs))
        contents, places = self.effects.preimages, self._workspaces(calls)
        moved = {path for path, place in places.items() if _is_moved(place)}
        why = "{} is another directory than the plan changed; put that one back, and undo again"
        refused = [
            Refusal(path=each.path, step_id=call.step_id, code="WORKSPACE_MOVED", reason=why.format(call.workspace))
            for call in calls if call.workspace in moved and is_of(call.step_id, request.step_id)
            for each in call.changes if each.undone is None
        ]  # fmt: skip
        present = [call for call in calls if call.workspace not in moved]

        def now(workspace: str, path: str) -> str:
            state = state_of(Workspace(workspace), path)
            return "unknown" if state is None else state

        restored, others = decide_undo(present, request.step_id, now, lambda state: contents.get(state) is not None)
        refused += [self._explained(refusal, calls) for refusal in others]
        if request.dry_run or (refused and not request.partly):
            return ChangesReport(restored=restored, refused=refused)
        done, failed = self._restore(restored, calls, places)
        self._mark(request, calls, done)
        return ChangesReport(restored=done, refused=refused + failed, dry_run=False)

    def _workspaces(self, calls: Iterable[CallChanges]) -> dict[str, Workspace]:
        """The workspaces of the calls, each the directory that it was then.

        Calls are in order of time: where a run was continued in another directory by a person's word, that one counts.
        """
        found: dict[str, Workspace] = {}
        for plan_id, path in dict.fromkeys((call.plan_id, call.workspace) for call in calls):
            known = self.journal.entered(plan_id, path)
            if path not in found or known is not None:
                found[path] = Workspace(path, directory=known, plan_id=plan_id)
        return found

    def _all_calls(self, request: ChangesRequest) -> list[CallChanges]:
        """The calls of the plan's set that changed files, their steps as the plan names them, oldest first."""
        found: list[CallChanges] = []
        for plan_id, prefix in (request.plans or {request.plan_id: ""}).items():
            undone = self.journal.undone(plan_id)
            workflow_id = plan_id if plan_id.startswith(AGENT_PREFIX) else f"plan-{plan_id}"
            effects = self.effects.log.of_workflow(workflow_id) if self.effects.log.path.exists() else []
            changed = [_of_effect(effect, time, plan_id) for effect, time in effects]
            for call in [*changed, *self.journal.of_plan(plan_id)]:
                changes = (
                    [self._marked(change, undone, call.key) for change in call.changes] if undone else call.changes
                )
                known = {"step_id": prefix + call.step_id, "undone": undone.get(call.key), "changes": changes}
                found.append(call.model_copy(update=known))
        return list(_linked(sorted(found, key=lambda call: call.time)))

    def _marked(self, change: FileChange, undone: Mapping[str, datetime], key: str) -> FileChange:
        """A change with when it was undone, if it was: with its call, or alone, where others were not (`partly`)."""
        time = undone.get(key) or undone.get(of_change(key, change.path))
        return change if time is None else change.model_copy(update={"undone": time})

    def _restore(
        self, restored: list[Restore], calls: list[CallChanges], places: Mapping[str, Workspace]
    ) -> tuple[list[Restore], list[Refusal]]:
        done: list[Restore] = []
        failed: list[Refusal] = []
        for each in restored:
            try:
                if not each.done:
                    self._put_back(each, places[each.workspace])
                done.append(each.model_copy(update={"done": True}))
            except (ToolError, OSError) as error:
                failed.append(_failure(each, error, calls))
        return done, failed

    def _put_back(self, each: Restore, workspace: Workspace) -> None:
        with (
            locked(self.effects.locks, workspace.root, each.path, lambda: False),
            workspace.recorded(each.path) as place,
        ):
            now = state_at(place)
            if now == each.target:
                return
            if now != each.expected:
                raise ToolError("CONFLICT", "it was changed during the undo")
            put(place, each.target, each.mode, self.effects.preimages)

    def _mark(self, request: ChangesRequest, calls: list[CallChanges], done: list[Restore]) -> None:
        """Mark the calls all of whose changes are undone, and of others those that are."""
        restored = {(each.workspace, each.path) for each in done}
        keys: dict[str, list[str]] = {request.plan_id: []}
        for call in calls:
            if call.undone is not None or not is_of(call.step_id, request.step_id):
                continue
            back = [change.path for change in call.changes if (call.workspace, change.path) in restored]
            is_whole = all(change.undone or change.path in back for change in call.changes)
            names = [call.key] if is_whole else [of_change(call.key, path) for path in back]
            keys.setdefault(call.plan_id, []).extend(names)
        for plan_id, names in keys.items():
            self.journal.mark_undone(plan_id, names, datetime.now(UTC))

    def _shown(self, calls: list[CallChanges], diffs: bool) -> list[CallChanges]:
        """The calls for the report: truncated, with diffs if requested."""
        shown: list[CallChanges] = []
        room, text = MAX_CHANGES, MAX_DIFF_BYTES
        for call in calls:
            changes: list[FileChange] = []
            for change in call.changes[:room]:
                diff = self._diff(call, change) if diffs and text > 0 else ""
                text -= len(diff)
                back = self._content(change.before) if change.undone is not None else None
                size = None if back is None else len(back)
                changes.append(change.model_copy(update={"diff": diff, "size": size}))
            more = call.more + len(call.changes) - len(changes)
            shown.append(call.model_copy(update={"changes": changes, "more": more}))
            room -= len(changes)
        return shown

    def _diff(self, call: CallChanges, change: FileChange) -> str:
        return _diff(change.path, self._content(change.before), self._after(call.workspace, change))

    def _after(self, workspace: str, change: FileChange) -> bytes | None:
        content = self._content(change.after)
        place = Workspace(workspace), change.path, MAX_COMPARED
        if content is None and change.after and state_of(*place) == change.after:
            return content_of(*place)
        return content

    def _content(self, state: str | None) -> bytes | None:
        if state == "":
            return b""
        return self.effects.preimages.get(state) if state and state != FOLDER and ":" not in state else None

    def _explained(self, refusal: Refusal, calls: Iterable[CallChanges]) -> Refusal:
        """The refusal with a diff of what changed since the run, if available."""
        if refusal.code != "CONFLICT":
            return refusal
        for call in calls:
            for change in call.changes if call.step_id == refusal.step_id else ():
                if change.path == refusal.path:
                    now = content_of(Workspace(call.workspace), change.path, MAX_COMPARED)
                    diff = _diff(change.path, self._content(change.after), now)
                    return refusal.model_copy(update={"diff": diff})
        return refusal


def _linked(calls: Iterable[CallChanges]) -> Iterator[CallChanges]:
    """Fill in unknown states before a change with the state after the previous change of that file.

    Not those of calls that began before the previous one had ended: nobody knows what they found.
    """
    left: dict[tuple[str, str], tuple[str | None, datetime]] = {}
    for call in calls:
        changes = []
        for change in call.changes:
            place = (call.workspace, change.path)
            after, ended = left.get(place, (None, call.time))
            came_later = ended <= (call.began or call.time)
            before = after if change.before is None and came_later else change.before
            left[place] = change.after, call.time
            changes.append(change.model_copy(update={"before": before}))
        yield call.model_copy(update={"changes": changes})


def _diff(path: str, before: bytes | None, after: bytes | None) -> str:
    return content_diff(path, before, after, DIFF) or ""


def _of_effect(effect: Effect, time: float, plan_id: str) -> CallChanges:
    step_id = of_call(effect.key.rpartition("/")[2].replace("%2F", "/"))[0]
    kind: Literal["created", "changed", "deleted"] = "created" if not effect.before else "changed"
    after = FOLDER if effect.kind == "directory" else effect.after
    mode = effect.value.get("mode") if isinstance(effect.value, dict) else None
    change = FileChange(
        path=effect.path,
        kind="deleted" if effect.kind == "delete" else kind,
        before=effect.before,
        after="" if effect.kind == "delete" else after,
        mode=mode,
    )
    return CallChanges(
        key=effect.key,
        plan_id=plan_id,
        step_id=step_id,
        workspace=effect.workspace,
        time=datetime.fromtimestamp(time, UTC),
        changes=[change],
    )


def _is_moved(workspace: Workspace) -> bool:
    """Whether another directory is in the place of a workspace; one that is missing is found out with its files."""
    try:
        with workspace.directory("."):
            return False
    except ToolError as error:
        return error.code == MOVED
    except OSError:
        return False


def _failure(each: Restore, error: ToolError | OSError, calls: list[CallChanges]) -> Refusal:
    step_id = next(
        (call.step_id for call in reversed(calls) if any(change.path == each.path for change in call.changes)), ""
    )
    if isinstance(error, OSError):
        return Refusal(path=each.path, step_id=step_id, code="CONFLICT", reason=error.strerror or str(error))
    code = REFUSALS.get(error.code, "CONFLICT")
    return Refusal(path=each.path, step_id=step_id, code=code, reason=error.message)
