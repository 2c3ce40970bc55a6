"""The activities of the lock on a workspace: start its keeper with a request, and ask whether its holder still runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

from temporalio import activity
from temporalio.client import WorkflowExecutionStatus
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.service import RPCError, RPCStatusCode

from plansurvive.activities.feature import InWorker
from plansurvive.features.locks.model import LockRequest, LocksAll
from plansurvive.features.locks.settings import LockSettings
from plansurvive.plans.activity_io import CheckRequest
from plansurvive.plans.parts import Part

RPC_TIMEOUT = timedelta(seconds=5)


@activity.defn(name="lock_workspace")
async def lock_workspace(request: LockRequest) -> None:
    """Send the request to the keeper of the lock, which begins if there is none. Asking again changes nothing."""
    await activity.client().start_workflow(
        "WorkspaceLockWorkflow",
        id=request.key,
        task_queue=activity.info().task_queue,
        start_signal="ask",
        start_signal_args=[request.model_dump(mode="json")],
        id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
        id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        static_summary="lock on a workspace",
        rpc_timeout=RPC_TIMEOUT,
    )


@activity.defn(name="has_ended")
async def has_ended(request: LockRequest) -> bool:
    """Whether the plan of a request has ended, however it did. Raises RPCError, which is retried."""
    handle = activity.client().get_workflow_handle(request.workflow_id, first_execution_run_id=request.run_id)
    try:
        found = await handle.describe(rpc_timeout=RPC_TIMEOUT)
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        return True
    first = found.raw_description.workflow_execution_info.first_run_id
    return found.status is not WorkflowExecutionStatus.RUNNING or (bool(first) and first != request.run_id)


class Worker(InWorker):
    """The lock on workspaces in a worker: its activities, and whether every plan takes it."""

    feature = "locks"

    def activities(self) -> Sequence[Callable[..., object]]:
        """`lock_workspace` and `has_ended`."""
        return lock_workspace, has_ended

    def facts(self, _: CheckRequest) -> Part | None:
        """Whether every plan of the worker locks its workspace."""
        return LocksAll(every_plan=True) if self.settings.of(LockSettings).workspace_lock == "all" else None


IN_WORKER = Worker
