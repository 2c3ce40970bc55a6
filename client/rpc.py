"""Speaking with the server about one plan: what its errors mean, and asking a plan something.

Every RPC error that a user can meet becomes a PlanError with a sentence. Queries are answered by a worker: when none
listens, that is said after a few seconds instead of waiting on.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from temporalio.client import Client, WorkflowExecutionDescription, WorkflowExecutionStatus, WorkflowQueryFailedError
from temporalio.common import RawValue
from temporalio.service import RPCError, RPCStatusCode

from client.errors import NoWorker, PlanClosed, PlanNotFound
from client.ids import plan_id, workflow_id
from plans.errors import PlanError
from runtime.errors import NotConnected
from runtime.task_queues import listeners

if TYPE_CHECKING:
    from plans.views.models import View

T = TypeVar("T")
V = TypeVar("V", bound="View")
RPC_TIMEOUT = timedelta(seconds=10)
QUERY_SECONDS = 2.0, 8.0
"""How long the first question may take, and the later ones: who answers late has a long history to read first."""
UNSERVED_SECONDS = 5.0
"""How long nobody may listen before that is said: after a server's restart its workers take a moment to come back."""
PATIENCE = 30.0
"""Seconds a plan may take to answer although a worker listens."""

LOST = frozenset({
    RPCStatusCode.UNAVAILABLE, RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.CANCELLED, RPCStatusCode.ABORTED,
    RPCStatusCode.UNKNOWN, RPCStatusCode.INTERNAL,
})  # fmt: skip
"""What the SDK reports when the server is away or too busy: worth another attempt."""
STUCK = "PLAN_STUCK"
"""The code of a plan that its worker tries to go on with, again and again."""
SERVER_REFUSED = "SERVER_REFUSED"
"""The code of what the server does not take, for a reason of its own."""
THINKING = "TMPRL1101"
"""What the SDK says of a workflow that was thinking for too long to answer."""
_UNANSWERED = LOST | {RPCStatusCode.FAILED_PRECONDITION}


@contextmanager
def about(plan: str) -> Iterator[None]:
    """Errors of the server inside are errors about this plan."""
    try:
        yield
    except RPCError as error:
        raise translated(error, plan) from error


def translated(error: RPCError, plan: str) -> PlanError:
    """The error in the project's words."""
    name = plan_id(plan)
    if error.status is RPCStatusCode.NOT_FOUND:
        if "already completed" in error.message:
            return PlanClosed(f"plan '{name}' has ended; it takes no messages any more. `plan summary {name}` shows it")
        return PlanNotFound(f"there is no plan '{name}'; `plan list` shows what there is")
    if error.status in LOST:
        return NotConnected(f"the Temporal server did not answer: {error.message or error.status.name.lower()}")
    if error.status is RPCStatusCode.FAILED_PRECONDITION:  # a question that no worker fetched
        return NoWorker(f"no worker answers for plan '{name}': {error.message}; start one: plan worker")
    if error.status in (RPCStatusCode.UNAUTHENTICATED, RPCStatusCode.PERMISSION_DENIED):
        return NotConnected(f"the Temporal server refused: {error.message}; check TEMPORAL_API_KEY and TEMPORAL_TLS*")
    return PlanError(f"the Temporal server refused: {error.message}", SERVER_REFUSED)


async def describe(client: Client, plan: str) -> WorkflowExecutionDescription:
    """What the server knows of the plan's newest run. Raises PlanNotFound."""
    with about(plan):
        return await client.get_workflow_handle(workflow_id(plan)).describe(rpc_timeout=RPC_TIMEOUT)


async def ask(client: Client, plan: str, query: str, *arguments: Any, patience: float = PATIENCE) -> Any:
    """The plan's answer to a query, an ended one's from its record. Raises PlanNotFound, NoWorker, NotConnected.

    `patience`: the seconds it may take to answer although a worker listens.
    """
    return await _answer(client, plan, query, arguments, patience)


async def ask_view(
    client: Client, plan: str, kind: type[V], query: str, *arguments: Any, patience: float = PATIENCE
) -> V:
    """As `ask`, for an answer that is a view of this kind."""
    answer = await _answer(client, plan, query, arguments, patience, RawValue)
    return kind.read(answer.payload.data if isinstance(answer, RawValue) else answer)


async def _answer(
    client: Client, plan: str, query: str, arguments: Sequence[Any], patience: float, kind: type | None = None
) -> Any:
    from client import end_records  # with all that reads a Run, which a list of plans does without

    handle = client.get_workflow_handle(workflow_id(plan))
    began, seconds = time.monotonic(), QUERY_SECONDS[0]
    while True:
        try:
            recorded = await end_records.answer(client, plan, query, arguments)
            if recorded is not None:
                return recorded.value
            left = max(began + patience - time.monotonic(), 0.1)
            timeout = timedelta(seconds=min(seconds, left))
            return await handle.query(query, args=arguments, result_type=kind, rpc_timeout=timeout)
        except WorkflowQueryFailedError as error:
            if THINKING not in error.message or time.monotonic() > began + patience:
                raise PlanError(f"plan '{plan_id(plan)}' could not answer: {error.message}", "QUERY_FAILED") from error
        except RPCError as error:
            if error.status not in _UNANSWERED:
                raise translated(error, plan) from error
            if time.monotonic() > began + patience:
                raise await _unanswered(client, plan, patience) from error
        if time.monotonic() > began + UNSERVED_SECONDS:
            await _require_worker(client, plan)
            seconds = QUERY_SECONDS[1]
        await asyncio.sleep(0.1)


async def patiently(client: Client, plan: str, say: Callable[[str], None], question: Callable[[], Awaitable[T]]) -> T:
    """The answer to a question that is asked again until server and worker are there; `say` is told once.

    Raises NoWorker when the plan has ended meanwhile.
    """
    told = False
    while True:
        try:
            return await question()
        except NotConnected as error:
            if isinstance(error, NoWorker) and await _has_ended(client, plan):
                raise
            if not told:
                say(error.message)
            told = True
        await asyncio.sleep(1.0)


async def _has_ended(client: Client, plan: str) -> bool:
    return (await describe(client, plan)).status is not WorkflowExecutionStatus.RUNNING


async def _unanswered(client: Client, plan: str, patience: float) -> PlanError:
    """Why a plan did not answer in all that time: a server that says what it knows of the plan was not the reason."""
    try:
        description = await describe(client, plan)
    except PlanError as error:
        return error
    late = f"plan '{plan_id(plan)}' did not answer within {patience:g} s"
    attempt = description.raw_description.pending_workflow_task.attempt
    if attempt > 1:
        why = f"its worker has tried {attempt} times to go on with it; its log and Temporal's UI say why it cannot"
        return NoWorker(f"{late}: {why}", STUCK)
    return NoWorker(
        f"{late}, although a worker was seen at queue '{description.task_queue}': it has just ended, or has too much "
        "to do. Try again, or start one: plan worker"
    )


async def _require_worker(client: Client, plan: str) -> None:
    queue = (await describe(client, plan)).task_queue
    with about(plan):
        if await listeners(client, queue):
            return
    raise NoWorker(f"no worker serves queue '{queue}', so plan '{plan_id(plan)}' waits; start one: plan worker")
