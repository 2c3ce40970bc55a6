"""ChangesWorkflow: lists or undoes a plan's file changes, on the workers that have its workspaces.

Asked before a plan is resumed, it lists the files that differ from what the plan last saw.

It runs the activity `file_changes` on each task queue of the plan in turn. An undo is preceded by a dry run on every
queue: a single refusal cancels the whole undo, unless the request allows a partial one (`partly`). The dry run also
says what there was to restore, of which an attempt that follows a killed one finds a part done.

Where decisions are signed, the activity restores nothing without a signature of the start: it has the worker's key.

Deleted once its answer was read, as it stood among the plans in lists. Rejected: a query (reads no files), standalone
activities (newer servers only).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError
from temporalio import workflow

from plansurvive.features.files.model import ChangesReport, ChangesRequest
from plansurvive.features.files.undo_rules import of_all_attempts
from plansurvive.plans.errors import InvalidPlan, PlanError
from plansurvive.plans.files.file_check import FileDifferences, FilesSeen
from plansurvive.plans.signature import message_digest
from plansurvive.workflows import policies
from plansurvive.workflows.inputs import invalid, only_object, schema_errors


@workflow.defn(name="ChangesWorkflow", failure_exception_types=[PlanError, ValidationError])
class ChangesWorkflow:
    """Handles one ChangesRequest. An undo has the id `undo-<planId>`, so that only one per plan runs at a time."""

    @workflow.run
    async def run(self, *arguments: Any) -> dict[str, Any]:
        """Returns the merged ChangesReport of all queues, or FileDifferences. Raises InvalidPlan: malformed request."""
        request = _read(arguments)
        if request.seen is not None:
            return (await self._compare(request.seen, request.queues)).model_dump(mode="json")
        if not request.undo or request.dry_run:
            return (await self._ask(request)).model_dump(mode="json")
        trial = await self._ask(request.model_copy(update={"dry_run": True}))
        if trial.refused and not request.partly:
            return trial.model_dump(mode="json")
        return of_all_attempts(trial, await self._ask(request)).model_dump(mode="json")

    async def _compare(self, seen: FilesSeen, queues: Sequence[str]) -> FileDifferences:
        found: FileDifferences = await workflow.execute_activity(
            "compare_files",
            seen,
            result_type=FileDifferences,
            task_queue=next(iter(queues), None),
            summary=f"check {len(seen.stamps)} files for changes",
            start_to_close_timeout=policies.SNAPSHOT.start_to_close,
            schedule_to_start_timeout=policies.NEW_QUEUE,
            retry_policy=policies.SNAPSHOT.retry_policy,
        )
        return found

    async def _ask(self, request: ChangesRequest) -> ChangesReport:
        merged = ChangesReport(dry_run=request.dry_run)
        queues: list[str | None] = list(request.queues) if request.queues else [None]
        for queue in queues:
            report: ChangesReport = await workflow.execute_activity(
                "file_changes",
                request,
                result_type=ChangesReport,
                task_queue=queue,
                summary="undo" if request.undo and not request.dry_run else "list changes",
                start_to_close_timeout=policies.CHANGES.start_to_close,
                schedule_to_start_timeout=policies.UNSERVED,
                heartbeat_timeout=policies.HEARTBEAT_TIMEOUT * 3,
                retry_policy=policies.CHANGES.retry_policy,
            )
            known = {call.key for call in merged.calls}  # two queues may share a workspace
            merged = merged.model_copy(
                update={
                    "calls": merged.calls + [call for call in report.calls if call.key not in known],
                    "restored": merged.restored + [each for each in report.restored if each not in merged.restored],
                    "refused": merged.refused + [each for each in report.refused if each not in merged.refused],
                }
            )
        return merged


def _read(arguments: Sequence[Any]) -> ChangesRequest:
    """Raises ApplicationError with the code INVALID_PLAN, as its problem says why."""
    try:
        sent = only_object(arguments, "CHANGES_SCHEMA", '{"planId": "...", "undo": false}')
        with schema_errors("CHANGES_SCHEMA"):
            return ChangesRequest.model_validate({**sent, "message": message_digest(sent)})
    except InvalidPlan as error:
        raise invalid(error.problems) from None


IN_RUN = None
WORKFLOWS = (ChangesWorkflow,)
