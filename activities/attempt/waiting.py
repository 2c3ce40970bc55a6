"""An attempt that does not begin, as a layer says so: Temporal begins the next one when it is worth asking again.

The server allows an activity a number of attempts, which waits must not use up: the first wait of a call has the server
lift it. Where it cannot, the last attempt fails with the code of what it waited for, and the plan can be resumed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta

from google.protobuf.field_mask_pb2 import FieldMask
from temporalio import activity
from temporalio.api.activity.v1 import ActivityOptions
from temporalio.api.common.v1 import RetryPolicy, WorkflowExecution
from temporalio.api.workflowservice.v1 import UpdateActivityOptionsRequest
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError

from plansurvive.activities.attempt.heartbeat import Heartbeat
from plansurvive.activities.feature import Waits

LIFT_TIMEOUT = timedelta(seconds=4)
"""Below the heartbeat timeout."""


Lift = Callable[[activity.Info], Awaitable[bool]]


async def waiting(wait: Waits, heartbeat: Heartbeat, lift: Lift) -> ApplicationError:
    """The error to raise to Temporal. `lift` has the server allow any number of attempts; false if it cannot."""
    info = activity.info()
    # The server does not say it of an attempt that a worker took eagerly, which is the first one.
    allowed = info.retry_policy.maximum_attempts if info.retry_policy else None
    lifted = allowed == 0 or await lift(info)
    if lifted or allowed is None or info.attempt < allowed:
        return heartbeat.waiting(wait, _within(info, wait.seconds))
    text = f"{wait.message}; the server allows no further attempt, so resume the plan later"
    return ApplicationError(text, {"code": wait.code, "attempt": 1}, type=wait.code, non_retryable=True)


async def lift_attempts(info: activity.Info) -> bool:
    """Let the running activity have any number of attempts. False if the server cannot."""
    client = activity.client()
    request = UpdateActivityOptionsRequest(
        namespace=info.workflow_namespace or client.namespace,
        execution=WorkflowExecution(workflow_id=info.workflow_id or "", run_id=info.workflow_run_id or ""),
        id=info.activity_id,
        activity_options=ActivityOptions(retry_policy=RetryPolicy(maximum_attempts=0)),
        update_mask=FieldMask(paths=["retry_policy.maximum_attempts"]),
    )
    try:
        await client.workflow_service.update_activity_options(request, timeout=LIFT_TIMEOUT)
    except RPCError:
        return False
    return True


def _within(info: activity.Info, seconds: float) -> float:
    """The delay, cut so that the server does not refuse it: of a workflow with a timeout, activities end with it."""
    if not info.schedule_to_close_timeout:
        return seconds
    left = (info.scheduled_time + info.schedule_to_close_timeout - info.started_time).total_seconds()
    return min(seconds, max(left / 2, 0.001))
