"""The limits of a worker, connected to the workflow that keeps them: `LimitsWorkflow`, one for each task queue.

All workers of a task queue ask the same one, wherever they run; it is started with the first exchange. If it does not
answer, nothing begins that has a limit.
"""

from __future__ import annotations

from datetime import timedelta

from google.protobuf.field_mask_pb2 import FieldMask
from pydantic import ValidationError
from temporalio import activity
from temporalio.api.activity.v1 import ActivityOptions
from temporalio.api.common.v1 import RetryPolicy, WorkflowExecution
from temporalio.api.workflowservice.v1 import UpdateActivityOptionsRequest
from temporalio.client import (
    Client,
    WithStartWorkflowOperation,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.common import Priority, WorkflowIDConflictPolicy
from temporalio.service import RPCError

from plansurvive.activities.limits.admission import Admissions
from plansurvive.activities.limits.exchanges import Exchanges, LimiterAway
from plansurvive.plans.limits.messages import EXCHANGE, WORKFLOW, Exchange, Reply, workflow_id
from plansurvive.runtime.limits.limits_file import read_limits
from plansurvive.runtime.settings import Settings

TIMEOUT = timedelta(seconds=4)
"""Of one exchange: below the heartbeat timeout, and above the time in which another worker takes the workflow over."""


def limits_of(client: Client, settings: Settings) -> Admissions | None:
    """The limits that the settings name; None if there are none. Raises SettingError."""
    file = read_limits(settings)
    if file.is_empty:
        return None
    keeper = _Keeper(client, settings.task_queue)
    return Admissions(file, Exchanges(keeper.send), keeper.lift)


class _Keeper:
    def __init__(self, client: Client, queue: str) -> None:
        self._client, self._queue = client, queue

    async def send(self, said: Exchange) -> Reply:
        """Send one exchange. Raises LimiterAway."""
        start = WithStartWorkflowOperation[
            object, object
        ](
            WORKFLOW,
            {},
            id=workflow_id(self._queue),
            task_queue=self._queue,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            priority=Priority(priority_key=1),  # plans that have no limit wait for nothing here
            static_summary=f"limits of {self._queue}"[:200],
        )
        try:
            reply = await self._client.execute_update_with_start_workflow(
                EXCHANGE,
                said.model_dump(mode="json", by_alias=True, exclude_defaults=True),
                start_workflow_operation=start,
                rpc_timeout=TIMEOUT,
            )
            return Reply.model_validate(reply)
        except (RPCError, WorkflowUpdateRPCTimeoutOrCancelledError) as error:
            raise LimiterAway(f"waits for the limiter, which does not answer: {error}"[:500]) from error
        except (WorkflowUpdateFailedError, ValidationError) as error:
            raise LimiterAway(f"the limiter refused the message: {error.__cause__ or error}"[:500]) from error

    async def lift(self) -> bool:
        """Let the activity that runs have any number of attempts. False if the server cannot."""
        info = activity.info()
        request = UpdateActivityOptionsRequest(
            namespace=info.workflow_namespace or self._client.namespace,
            execution=WorkflowExecution(workflow_id=info.workflow_id or "", run_id=info.workflow_run_id or ""),
            id=info.activity_id,
            activity_options=ActivityOptions(retry_policy=RetryPolicy(maximum_attempts=0)),
            update_mask=FieldMask(paths=["retry_policy.maximum_attempts"]),
        )
        try:
            await self._client.workflow_service.update_activity_options(request, timeout=TIMEOUT)
        except RPCError:
            return False
        return True
