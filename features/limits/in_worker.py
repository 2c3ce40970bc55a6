"""The limits of a worker, connected to the workflow that keeps them: `LimitsWorkflow`, one for each task queue.

All workers of a task queue ask the same one, wherever they run; it is started with the first exchange. If it does not
answer, nothing begins that has a limit.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from pydantic import ValidationError
from temporalio.client import (
    Client,
    WithStartWorkflowOperation,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.common import Priority, WorkflowIDConflictPolicy
from temporalio.service import RPCError

from plansurvive.activities.feature import InWorker, Layer
from plansurvive.activities.tools.tool import Tool
from plansurvive.features.limits.admission import Admissions
from plansurvive.features.limits.exchanges import Exchanges, LimiterAway
from plansurvive.features.limits.limits_file import read_limits
from plansurvive.features.limits.model import EXCHANGE, WORKFLOW, Exchange, Reply, workflow_id

TIMEOUT = timedelta(seconds=4)
"""Of one exchange: below the heartbeat timeout, and above the time in which another worker takes the workflow over."""


class Worker(InWorker):
    """The limits that a worker's settings name, for all the task queues that its process polls."""

    feature = "limits"

    def layer(self, tools: Iterable[Tool]) -> Layer | None:  # noqa: ARG002
        """Asks before each attempt; None if nothing is limited. Raises SettingError."""
        file, keeper = read_limits(self.settings), _Keeper(self.client, self.settings.task_queue)
        return None if file.is_empty else Admissions(file, Exchanges(keeper.send))


IN_WORKER = Worker


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
