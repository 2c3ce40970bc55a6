"""Sends messages to a plan as updates, which it answers: decisions, controls, answers, events and edits.

An update takes effect only once a worker has accepted it. Until then the server keeps it in memory, so what no worker
accepts in time is reported as NoWorker, with how to find out what became of it.

Updates, since they answer. The SDK's deadline is for one request, which it repeats without end, so there is one here.
The server holds ten updates of a plan at a time and refuses others; once it has refused one, it may keep those that it
holds for ten seconds and more, or drop them (measured: 30 at once took 0.1 s four at a time, else 1 to 15 s). So a
process sends a few at a time, and sends again, under the same id, what was refused or dropped by reason of others.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator
from typing import Any
from uuid import uuid4
from weakref import WeakKeyDictionary, WeakValueDictionary

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.update.v1 import UpdateRef
from temporalio.api.workflowservice.v1 import PollWorkflowExecutionUpdateRequest
from temporalio.client import (
    Client,
    RPCTimeoutOrCancelledError,
    WorkflowUpdateFailedError,
    WorkflowUpdateHandle,
    WorkflowUpdateStage,
)
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from plansurvive.client.errors import NoWorker, PlanClosed
from plansurvive.client.ids import plan_id, workflow_id
from plansurvive.client.rpc import (
    PATIENCE,
    RPC_TIMEOUT,
    SERVER_REFUSED,
    UNSERVED_SECONDS,
    about,
    require_worker,
    unanswered,
)
from plansurvive.plans.errors import InvalidPlan, PlanError, Refused
from plansurvive.plans.execution.messages import MAX_BYTES, check_size
from plansurvive.plans.model import Problem

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


async def update(
    client: Client, plan: str, name: str, message: dict[str, Any], patience: float = PATIENCE,
    max_bytes: int = MAX_BYTES,
) -> dict[str, Any]:  # fmt: skip
    """Send an update and wait for its result, without a time limit once a worker has accepted it.

    `patience`: seconds until a worker must have accepted it; if none polls the plan's queue, it is five at most. Raises
    Refused, InvalidPlan with every problem, PlanClosed, PlanNotFound; NoWorker if no worker accepts it in time: it was
    sent, and takes effect if a worker comes before the server drops it; SERVER_REFUSED if it was not sent, because too
    many others were. What is larger than `max_bytes` of JSON is refused without sending.
    """
    check_size(message, max_bytes)
    until = time.monotonic() + patience
    while True:
        try:
            with about(plan):
                accepted = await _accepted(client, plan, name, message, patience)
                return dict(await _result(accepted, patience))
        except WorkflowUpdateFailedError as error:
            if UNPROCESSED not in str(error.cause) or time.monotonic() > until:
                raise _refusal(error.cause) from error


async def _accepted(
    client: Client, plan: str, name: str, message: dict[str, Any], patience: float
) -> WorkflowUpdateHandle[Any]:
    """The update, once a worker has accepted it. Raises NoWorker, and PlanError if the server takes no more of them."""
    # 1. This process sends a few at a time. A semaphore is kept as long as somebody sends or waits to send.
    until = time.monotonic() + patience
    turns = _TURNS.setdefault(asyncio.get_running_loop(), WeakValueDictionary())
    turn = turns.setdefault(workflow_id(plan), asyncio.Semaphore(AT_ONCE))
    try:
        async with asyncio.timeout(patience):
            await turn.acquire()
    except TimeoutError:
        why = await _unserved(client, plan, None) or await unanswered(client, plan, patience)
        raise (_not_sent(plan_id(plan), why) if isinstance(why, NoWorker) else why) from None
    # 2. Its turn: send it, and again where the server drops or refuses it.
    try:
        return await _sent(client, plan, name, message, max(until - time.monotonic(), 0.1), patience)
    finally:
        turn.release()


async def _sent(
    client: Client, plan: str, name: str, message: dict[str, Any], left: float, patience: float
) -> WorkflowUpdateHandle[Any]:
    """As `_accepted`, in its turn: `left` of the seconds of patience."""
    handle = client.get_workflow_handle(workflow_id(plan))
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
        if time.monotonic() >= unserved and (why := await _unserved(client, plan, patience if left <= 0 else None)):
            raise await _fate(client, plan, update_id, why)
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


async def _unserved(client: Client, plan: str, waited: float | None) -> PlanError | None:
    """Why no worker has accepted it: none polls the plan's queue, or, after `waited` seconds, in any case."""
    try:
        await require_worker(client, plan)
    except NoWorker as error:
        return error
    return None if waited is None else await unanswered(client, plan, waited)


async def _fate(client: Client, plan: str, update_id: str, why: PlanError) -> PlanError:
    """Why it was not accepted, and what becomes of it."""
    if not isinstance(why, NoWorker):
        return why
    name = plan_id(plan)
    if not await is_held(client, plan, update_id):
        return _not_sent(name, why)
    fate = "The message was sent and takes effect when a worker serves the plan"
    unless = f"unless the Temporal server drops it before, as it does when it restarts; check then: plan show {name}"
    return NoWorker(f"{why.message}. {fate}, {unless}", why.code)


def _not_sent(plan: str, why: NoWorker) -> PlanError:
    text = f"the message to plan '{plan}' was not sent: the server takes no more until some are handled"
    return PlanError(f"{text}; {why.message}", SERVER_REFUSED)


async def is_held(client: Client, plan: str, update_id: str) -> bool:
    """Whether the server has the update: a request that ended in a timeout may have been refused all along."""
    execution = WorkflowExecution(workflow_id=workflow_id(plan))
    reference = UpdateRef(workflow_execution=execution, update_id=update_id)
    request = PollWorkflowExecutionUpdateRequest(namespace=client.namespace, update_ref=reference)
    try:
        await client.workflow_service.poll_workflow_execution_update(request, timeout=RPC_TIMEOUT)
    except RPCError as error:
        return error.status is not RPCStatusCode.NOT_FOUND
    return True


def _refusal(cause: BaseException | None) -> PlanError:
    if not isinstance(cause, ApplicationError):
        return PlanError(str(cause), "REFUSED")
    detail = cause.details[0] if cause.details and isinstance(cause.details[0], dict) else {}
    problems = [Problem.model_validate(each) for each in detail.get("problems", [])]
    if problems:
        return InvalidPlan(problems)
    if cause.type == "AcceptedUpdateCompletedWorkflow":
        return PlanClosed("the plan ended before the message was handled; `plan summary` shows how it ended")
    kind = PlanClosed if cause.type == "PLAN_CLOSED" else Refused
    return kind(cause.message, cause.type)
