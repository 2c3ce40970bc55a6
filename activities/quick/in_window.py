"""A tool's attempt as a quick call: it has what is left of its window, and a short result, or fails.

Then it is made again as an activity of its own: only such calls have heartbeats, further attempts and time.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Awaitable, Callable

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from plans.activity_io import Call, Return
from plans.audit.entries import digest_of
from plans.model import Retry
from plans.quick.batching import (
    MAX_RESULT_BYTES,
    NOT_QUICK,
    QUICK_SECONDS,
    SLOW_SECONDS,
    STALE_SECONDS,
    TOO_LATE,
    Quick,
)

Attempted = Callable[[Call], Awaitable[Return]]


def in_window(attempt: Attempted) -> Attempted:
    """The same attempt, kept within its window where the call is quick, and as it is where it is not."""

    @functools.wraps(attempt)
    async def either(call: Call) -> Return:
        return await (_quickly(attempt, call) if activity.info().is_local else attempt(call))

    return either


async def _quickly(attempt: Attempted, call: Call) -> Return:
    info = activity.info()
    began = info.scheduled_time.timestamp()
    since = call.quick_since
    until = (began if since is None or began - since > STALE_SECONDS else since) + QUICK_SECONDS
    started, limit = time.monotonic(), asyncio.timeout(until - time.time())
    try:
        async with limit:
            returned = await attempt(call.model_copy(update={"retry": Retry(attempts=1)}))  # no heartbeat of a next one
    except (TimeoutError, ApplicationError):  # a cancelled attempt that has something to tell fails
        if limit.expired():
            raise _late(started) from None
        raise
    ended = time.time()
    if ended > until:
        raise _late(started)
    if len(returned.model_dump_json().encode()) > MAX_RESULT_BYTES:
        raise _failure(NOT_QUICK, "its result is too long")
    told = Quick(step_id=call.step_id, args=digest_of(call.args), began=began, ended=ended)
    return returned.model_copy(update={"quick": told})


def _late(started: float) -> ApplicationError:
    is_slow = time.monotonic() - started > SLOW_SECONDS
    return _failure(NOT_QUICK if is_slow else TOO_LATE, "it was not done in time")


def _failure(code: str, why: str) -> ApplicationError:
    return ApplicationError(why, type=code, non_retryable=True, category=ApplicationErrorCategory.BENIGN)
