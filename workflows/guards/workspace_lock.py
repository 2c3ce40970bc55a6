"""A plan's side of the lock on its workspace: asks its keeper, waits beside everything else, and releases it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError

from plansurvive.plans.guards.lock_state import LockRelease, LockRequest, LockState
from plansurvive.plans.guards.workspace_lock import asked, needs_lock
from plansurvive.plans.run import Run

AGAIN = 120.0
"""Seconds after which a plan asks again: somebody may have ended the keeper of the lock."""
_TIMEOUT = timedelta(seconds=10)
_RETRY = RetryPolicy(initial_interval=timedelta(seconds=1), maximum_interval=timedelta(seconds=30))


class WorkspaceLock:
    """The lock of one run of a workflow. What it knows is in the Run: continue-as-new keeps it."""

    def __init__(self) -> None:
        self._asking: asyncio.Task[None] | None = None

    def may_start(self, run: Run) -> bool:
        """Whether steps may start. Asks for the lock if the plan needs it and has not."""
        if not needs_lock(run) or (run.lock is None and run.stopped):
            return True
        lock = run.lock or asked(run, str(workflow.uuid4()), workflow.now())
        if lock.held is not None:
            self._rest()
            return True
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask(run, lock))
        return False

    async def release(self, run: Run) -> None:
        """Leave the line, or give the lock to the next one, as the plan ends."""
        self._rest()
        if run.lock is None:
            return
        message = LockRelease(workflow_id=workflow.info().workflow_id, token=run.lock.token)
        with suppress(ApplicationError):  # the keeper is gone
            handle = workflow.get_external_workflow_handle(run.lock.key)
            await handle.signal("release", message.model_dump(mode="json"))

    def _rest(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            self._asking = None

    async def _ask(self, run: Run, lock: LockState) -> None:
        info = workflow.info()
        request = LockRequest(
            key=lock.key, workflow_id=info.workflow_id, run_id=info.first_execution_run_id, token=lock.token
        )
        with suppress(ActivityError):  # it was cancelled, as nothing else ends it: its attempts are not limited
            while run.lock is not None and run.lock.held is None:
                await workflow.execute_activity(
                    "lock_workspace", request, start_to_close_timeout=_TIMEOUT, retry_policy=_RETRY,
                    summary="ask for the workspace",
                )  # fmt: skip
                await workflow.sleep(AGAIN, summary="ask for the workspace again")
