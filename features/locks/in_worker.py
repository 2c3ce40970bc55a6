"""The activities of the lock on a workspace: start its keeper with a request, and ask whether its holder still runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from temporalio import activity

from plansurvive.activities.feature import InWorker
from plansurvive.activities.lifecycle import keeper
from plansurvive.features.locks.model import LockRequest, LocksAll
from plansurvive.features.locks.settings import LockSettings
from plansurvive.plans.activity_io import CheckRequest
from plansurvive.plans.model.parts import Part


@activity.defn(name="lock_workspace")
async def lock_workspace(request: LockRequest) -> None:
    """Send the request to the keeper of the lock, which begins if there is none. Asking again changes nothing."""
    queue = activity.info().task_queue
    await keeper.ask(
        activity.client(), "WorkspaceLockWorkflow", request.key, request, queue=queue, summary="lock on a workspace"
    )


@activity.defn(name="has_ended")
async def has_ended(request: LockRequest) -> bool:
    """Whether the plan of a request has ended, however it did. Raises RPCError, which is retried."""
    return await keeper.has_ended(activity.client(), request)


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
