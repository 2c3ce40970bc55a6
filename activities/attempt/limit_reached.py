"""An attempt that does not begin, as a limit is used up: Temporal begins the next one when it is worth asking again.

The server allows an activity a number of attempts, which waits must not use up: the first wait of a call has the server
lift it. Where it cannot, the last attempt fails with LIMIT_REACHED, and the plan can be resumed.
"""

from __future__ import annotations

from temporalio import activity
from temporalio.exceptions import ApplicationError

from plansurvive.activities.attempt.heartbeat import Heartbeat
from plansurvive.activities.limits.admission import Admissions, Waits


async def waiting(limits: Admissions | None, wait: Waits, heartbeat: Heartbeat) -> ApplicationError:
    """The error to raise to Temporal."""
    info = activity.info()
    # The server does not say it of an attempt that a worker took eagerly, which is the first one.
    allowed = info.retry_policy.maximum_attempts if info.retry_policy else None
    lifted = allowed == 0 or (limits is not None and await limits.lift())
    if lifted or allowed is None or info.attempt < allowed:
        return heartbeat.waiting(wait, _within(info, wait.seconds))
    text = f"{wait.message}; the server allows no further attempt, so resume the plan later"
    return ApplicationError(text, {"code": wait.code, "attempt": 1}, type=wait.code, non_retryable=True)


def _within(info: activity.Info, seconds: float) -> float:
    """The delay, cut so that the server does not refuse it: of a workflow with a timeout, activities end with it."""
    if not info.schedule_to_close_timeout:
        return seconds
    left = (info.scheduled_time + info.schedule_to_close_timeout - info.started_time).total_seconds()
    return min(seconds, max(left / 2, 0.001))
