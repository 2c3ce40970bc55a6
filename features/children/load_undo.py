"""The activity `load_undo`: what undoes an ended child plan, for the plan that ran it and rolls back.

It asks the server for the child's Run, or for that of the plan that undid it last, so that nothing is undone twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from temporalio import activity
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowQueryFailedError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from plansurvive.features.children.model import LoadedUndo, UndoRequest
from plansurvive.plans.execution.undo_run import MAX_UNDOS, undo_plan_id

ANSWER_TIMEOUT = timedelta(seconds=30)


@dataclass(frozen=True)
class UndoLoader:
    """The activity, with the worker's client."""

    client: Client

    @activity.defn(name="load_undo")
    async def load_undo(self, request: UndoRequest) -> LoadedUndo:
        """The Run to undo, and the id of the plan that does it.

        Raises ApplicationError, not retryable: UNDO_RUNNING if another one is under way, PLAN_NOT_FOUND, QUERY_FAILED.
        """
        last = request.plan_id
        for number in range(1, MAX_UNDOS + 1):
            name = undo_plan_id(request.plan_id, number)
            try:
                found = await self.client.get_workflow_handle(f"plan-{name}").describe(rpc_timeout=ANSWER_TIMEOUT)
            except RPCError as error:
                if error.status is not RPCStatusCode.NOT_FOUND:
                    raise
                return LoadedUndo(run=await self._state(last), undo_id=name)
            if found.status is WorkflowExecutionStatus.RUNNING:
                text = f"plan '{name}' undoes it at this moment; follow it: plan watch {name}"
                raise ApplicationError(text, type="UNDO_RUNNING", non_retryable=True)
            last = name
        text = f"plan '{request.plan_id}' was undone {MAX_UNDOS} times, and something is still left"
        raise ApplicationError(text, type="TOO_MANY_RUNS", non_retryable=True)

    async def _state(self, plan_id: str) -> dict[str, Any]:
        handle = self.client.get_workflow_handle(f"plan-{plan_id}")
        try:
            state: dict[str, Any] = await handle.query("state", rpc_timeout=ANSWER_TIMEOUT)
        except WorkflowQueryFailedError as error:
            raise ApplicationError(str(error)[:4_000], type="QUERY_FAILED", non_retryable=True) from None
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            text = f"the server has forgotten plan '{plan_id}'; undo by hand what it did"
            raise ApplicationError(text, type="PLAN_NOT_FOUND", non_retryable=True) from None
        return state
