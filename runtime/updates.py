"""Sends messages to a workflow as updates, which it answers: what a person decides, what an agent's turn reports.

An update takes effect only once a worker has accepted it. The SDK's deadline is for one request, which it repeats
without end, so there is one here. The server holds ten updates of a workflow at a time and refuses others; once it has
refused one, it may keep those that it holds for ten seconds and more, or drop them (measured: 30 at once took 0.1 s
four at a time, else 1 to 15 s). So a process sends a few at a time, and sends again, under the same id, what was
refused or dropped by reason of others.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator
from typing import Any, Protocol
from uuid import uuid4
from weakref import WeakKeyDictionary, WeakValueDictionary

from temporalio.client import (
    Client,
    RPCTimeoutOrCancelledError,
    WorkflowUpdateFailedError,
    WorkflowUpdateHandle,
    WorkflowUpdateStage,
)
from temporalio.service import RPCError, RPCStatusCode

UNSERVED_SECONDS = 5.0
"""Seconds before the absence of workers is an error: after a server restart they need a moment to reconnect."""
AT_ONCE = 4
"""Updates that one process sends to a plan at a time, until they are accepted; others may do so too."""
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0
"""Seconds between attempts, at most."""
DROPPED = "update was aborted"
"""What the server says, as UNAVAILABLE, of an update that it has dropped with a workflow task that nobody took."""
BEHIND = "Workflow Task in failed state"
"""What it says, as FAILED_PRECONDITION, while a workflow task is repeated that has failed or timed out before."""
UNPROCESSED = "wasn't processed by worker"
"""What it says of an update that was with a worker which lost its workflow task: it took no effect, and
its id is used up.
"""

_TURNS: WeakKeyDictionary[asyncio.AbstractEventLoop, WeakValueDictionary[str, asyncio.Semaphore]] = WeakKeyDictionary()


class WhyNot(Protocol):
    """Asked from time to time while no worker has accepted an update."""

    async def __call__(self, update_id: str, /, *, is_late: bool) -> Exception | None:
        """Why to wait no longer; None: wait. `update_id` is empty while others of this process are sent first.

        `is_late`: its time is over, so there is a reason.
        """


async def send(
    client: Client, workflow_id: str, name: str, message: dict[str, Any], patience: float, why_not: WhyNot
) -> dict[str, Any]:
    """Send an update and wait for its result, without a time limit once a worker has accepted it.

    `patience`: seconds until a worker must have accepted it. Raises what `why_not` returns, RPCError, and
    WorkflowUpdateFailedError if the workflow refuses it.
    """
    until = time.monotonic() + patience
    while True:
        try:
            accepted = await _accepted(client, workflow_id, name, message, patience, why_not)
            return dict(await _result(accepted, patience))
        except WorkflowUpdateFailedError as error:
            if UNPROCESSED not in str(error.cause) or time.monotonic() > until:
                raise


async def _accepted(
    client: Client, workflow_id: str, name: str, message: dict[str, Any], patience: float, why_not: WhyNot
) -> WorkflowUpdateHandle[Any]:
    """The update, once a worker has accepted it."""
    # 1. This process sends a few at a time. A semaphore is kept as long as somebody sends or waits to send.
    until = time.monotonic() + patience
    turns = _TURNS.setdefault(asyncio.get_running_loop(), WeakValueDictionary())
    turn = turns.setdefault(workflow_id, asyncio.Semaphore(AT_ONCE))
    try:
        async with asyncio.timeout(patience):
            await turn.acquire()
    except TimeoutError:
        raise await why_not("", is_late=True) or TimeoutError(name) from None
    # 2. Its turn: send it, and again where the server drops or refuses it.
    try:
        return await _sent(client, workflow_id, name, message, max(until - time.monotonic(), 0.1), why_not)
    finally:
        turn.release()


async def _sent(
    client: Client, workflow_id: str, name: str, message: dict[str, Any], left: float, why_not: WhyNot
) -> WorkflowUpdateHandle[Any]:
    """As `_accepted`, in its turn: `left` of the seconds of patience."""
    handle = client.get_workflow_handle(workflow_id)
    # One id for every attempt: the server applies an id once, however often it is sent.
    update_id, pauses = uuid4().hex, _pauses()
    began = time.monotonic()
    unserved, until = began + min(UNSERVED_SECONDS, left), began + left
    seconds = unserved - began
    while True:
        try:
            # A timeout of our own: the SDK's is for one request, and it repeats requests that the server answers with
            # "not accepted yet" without end.
            async with asyncio.timeout(seconds):
                return await handle.start_update(
                    name, message, id=update_id, wait_for_stage=WorkflowUpdateStage.ACCEPTED
                )
        except (RPCTimeoutOrCancelledError, TimeoutError) as error:
            _raise_own_cancellation(error)
        except RPCError as error:
            if not _is_crowded(error):
                raise
        left = until - time.monotonic()
        if time.monotonic() >= unserved and (why := await why_not(update_id, is_late=left <= 0)):
            raise why
        seconds = max(left, 0.1)
        await asyncio.sleep(min(next(pauses), seconds))


async def _result(accepted: WorkflowUpdateHandle[Any], patience: float) -> Any:
    """What an accepted update returns, which the plan's history keeps: asked for again while the server is busy."""
    busy_since, pauses = time.monotonic(), _pauses()
    while True:
        asked = time.monotonic()
        try:
            return await accepted.result()
        except RPCTimeoutOrCancelledError as error:
            _raise_own_cancellation(error)
        except RPCError as error:
            if not _is_crowded(error):
                raise
            if time.monotonic() > asked + LONGEST_PAUSE:  # until now the server has listened
                busy_since = asked = time.monotonic()
            if asked > busy_since + patience:
                raise
        await asyncio.sleep(next(pauses))


def _raise_own_cancellation(error: Exception) -> None:
    """Raise CancelledError if this task is being cancelled: the SDK reports that as a timeout of its request."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError from error


def _is_crowded(error: RPCError) -> bool:
    """Whether the server holds ten other updates of the plan (RESOURCE_EXHAUSTED), has dropped this one, or takes none
    until a worker has done a workflow task that others had no time for.
    """
    return error.status is RPCStatusCode.RESOURCE_EXHAUSTED or any(each in error.message for each in (DROPPED, BEHIND))


def _pauses() -> Iterator[float]:
    """Seconds between attempts, longer each time; not the same for all that wait for the same plan."""
    longest = FIRST_PAUSE
    while True:
        yield longest * random.uniform(0.5, 1.0)  # noqa: S311 - no secret
        longest = min(2 * longest, LONGEST_PAUSE)
