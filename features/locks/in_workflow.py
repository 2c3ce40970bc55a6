"""A plan's side of the lock on its workspace: asks its keeper, waits beside everything else, and releases it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError

from plansurvive.features.locks.keeper import WorkspaceLockWorkflow
from plansurvive.features.locks.model import Lock, LockNews, LockRelease, LockRequest, LockState
from plansurvive.features.locks.rules import asked, needs_lock, told
from plansurvive.workflows.execution import Execution
from plansurvive.workflows.feature import InRun, signal

AGAIN = 120.0
"""Seconds after which a plan asks again: somebody may have ended the keeper of the lock."""
_TIMEOUT = timedelta(seconds=10)
_RETRY = RetryPolicy(initial_interval=timedelta(seconds=1), maximum_interval=timedelta(seconds=30))


class WorkspaceLock(InRun):
    """The lock of one run of a workflow. What it knows is in the run's part: continue-as-new keeps it."""

    feature = "locks"
    of_one_run = True

    def __init__(self, execution: Execution) -> None:
        super().__init__(execution)
        self._run = execution.run
        self._asking: asyncio.Task[None] | None = None

    @signal("workspace_lock", LockNews, "Sent by the keeper of the lock on the workspace: who holds it.")
    def workspace_lock(self, news: LockNews) -> None:
        """Sent by the keeper of the lock on its workspace: whether the plan holds it, and who does."""
        told(self._run, news, workflow.now())

    def turn(self) -> bool:
        """Whether steps may start. Asks for the lock if the plan needs it and has not."""
        run = self._run
        if not needs_lock(run):
            return True
        lock = run.part(Lock).state
        if lock is None and run.stopped:
            return True
        lock = lock or asked(run, str(workflow.uuid4()), workflow.now())
        if lock.held is not None:
            self._rest()
            return True
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask(lock))
        return False

    async def ended(self) -> None:
        """Leave the line, or give the lock to the next one, as the plan has ended."""
        self._rest()
        lock = self._run.part(Lock).state
        if lock is None:
            return
        message = LockRelease(workflow_id=workflow.info().workflow_id, token=lock.token)
        with suppress(ApplicationError):  # the keeper is gone
            handle = workflow.get_external_workflow_handle(lock.key)
            await handle.signal("release", message.model_dump(mode="json"))

    def _rest(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            self._asking = None

    async def _ask(self, lock: LockState) -> None:
        info = workflow.info()
        request = LockRequest(
            key=lock.key, workflow_id=info.workflow_id, run_id=info.first_execution_run_id, token=lock.token
        )
        with suppress(ActivityError):  # it was cancelled, as nothing else ends it: its attempts are not limited
            while (state := self._run.part(Lock).state) is not None and state.held is None:
                await workflow.execute_activity(
                    "lock_workspace", request, start_to_close_timeout=_TIMEOUT, retry_policy=_RETRY,
                    summary="ask for the workspace",
                )  # fmt: skip
                await workflow.sleep(AGAIN, summary="ask for the workspace again")


IN_RUN, WORKFLOWS = WorkspaceLock, (WorkspaceLockWorkflow,)
