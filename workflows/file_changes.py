"""ChangesWorkflow: what a plan changed in files, told or taken back by the workers that have its workspaces.

It asks each task queue of the plan in turn. Before anything is taken back, all are asked whether it can be: one refusal
anywhere is enough for nothing to be done, unless the request says otherwise.
"""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError
from temporalio import workflow

from plans.errors import PlanError
from plans.files.undo import ChangesReport, ChangesRequest
from workflows import policies


@workflow.defn(name="ChangesWorkflow", failure_exception_types=[PlanError, ValidationError])
class ChangesWorkflow:
    """Answers one request. Its id is `undo-<planId>` when it takes something back: one at a time."""

    @workflow.run
    async def run(self, given: dict[str, Any]) -> dict[str, Any]:
        """The answers of all queues as one."""
        request = ChangesRequest.model_validate(given)
        if not request.undo or request.dry_run or request.partly:
            return (await self._ask(request)).model_dump(mode="json")
        trial = await self._ask(request.model_copy(update={"dry_run": True}))
        if trial.refused:
            return trial.model_dump(mode="json")
        return (await self._ask(request)).model_dump(mode="json")

    async def _ask(self, request: ChangesRequest) -> ChangesReport:
        found = ChangesReport(dry_run=request.dry_run)
        queues: list[str | None] = list(request.queues) if request.queues else [None]
        for queue in queues:
            report: ChangesReport = await workflow.execute_activity(
                "file_changes",
                request,
                result_type=ChangesReport,
                task_queue=queue,
                summary="undo" if request.undo and not request.dry_run else "look",
                start_to_close_timeout=policies.CHANGES.start_to_close,
                schedule_to_start_timeout=policies.UNSERVED,
                retry_policy=policies.CHANGES.retry_policy,
            )
            known = {call.key for call in found.calls}
            found = found.model_copy(
                update={
                    "calls": found.calls + [call for call in report.calls if call.key not in known],
                    "restored": found.restored + [each for each in report.restored if each not in found.restored],
                    "refused": found.refused + [each for each in report.refused if each not in found.refused],
                }
            )
        return found
