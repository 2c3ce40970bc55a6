"""Queries a plan and translates Temporal RPC errors into PlanErrors.

Every RPC error that a user can meet becomes a PlanError with a sentence. Queries need a worker: if none polls the
plan's task queue, NoWorker is raised after a few seconds instead of waiting for the RPC deadline.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.client import (
    Client,
    WorkflowExecution,
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
    WorkflowQueryFailedError,
)
from temporalio.common import RawValue
from temporalio.service import RPCError, RPCStatusCode

from plansurvive.client.errors import NoWorker, PlanClosed, PlanNotFound, Sought
from plansurvive.client.feature import views_of_features
from plansurvive.client.ids import plan_id, workflow_id
from plansurvive.plans.errors import PlanError
from plansurvive.plans.flow.ids import is_step_of, of_call
from plansurvive.runtime.conversion.query_failures import THINKING, reason
from plansurvive.runtime.errors import NotConnected
from plansurvive.runtime.task_queues import listeners
from plansurvive.runtime.updates import UNSERVED_SECONDS

if TYPE_CHECKING:
    from plansurvive.plans.views.models import View

T = TypeVar("T")
V = TypeVar("V", bound="View")
RPC_TIMEOUT = timedelta(seconds=10)
"""Deadline of a single RPC."""
QUERY_SECONDS = 2.0, 8.0
"""Deadline of the first query attempt and of the later ones: a slow worker may be replaying a long history."""
PATIENCE = 30.0
"""Seconds a plan may take to answer while a worker polls its queue."""

LOST = frozenset({
    RPCStatusCode.UNAVAILABLE, RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.CANCELLED, RPCStatusCode.ABORTED,
    RPCStatusCode.UNKNOWN, RPCStatusCode.INTERNAL,
})  # fmt: skip
"""Statuses the SDK reports when the server is unavailable or overloaded; worth a retry."""
STUCK = "PLAN_STUCK"
"""Error code: the plan's workflow task keeps failing on its worker."""
SERVER_REFUSED = "SERVER_REFUSED"
"""Error code: the server rejected the request for another reason."""
_UNANSWERED = LOST | {RPCStatusCode.FAILED_PRECONDITION, RPCStatusCode.RESOURCE_EXHAUSTED}
"""Statuses of a query that is worth asking again. RESOURCE_EXHAUSTED: while a plan's workflow task is with a worker,
which may just have died, the server keeps one query for its answer and refuses all others."""


@contextmanager
def about(plan: str) -> Iterator[None]:
    """Context manager: translates RPC errors raised inside into PlanErrors about this plan."""
    try:
        yield
    except RPCError as error:
        raise translated(error, plan) from error


def translated(error: RPCError, plan: str) -> PlanError:
    """The PlanError for an RPC error. `plan` is empty if the request was not about one plan."""
    name = plan_id(plan)
    if error.status is RPCStatusCode.NOT_FOUND:
        if "already completed" in error.message:
            return PlanClosed(f"plan '{name}' has ended and accepts no more messages; see: plan summary {name}")
        return PlanNotFound(Sought(f"there is no plan '{name}'", "`plan list` shows the plans", name))
    if error.status in LOST:
        why = error.message or error.status.name.lower()
        return NotConnected(f"the Temporal server did not answer: {why}; `plan doctor` checks the connection")
    if error.status is RPCStatusCode.FAILED_PRECONDITION:  # a query that no worker picked up
        return NoWorker(f"no worker answers for plan '{name}': {error.message}; start one: plan up")
    if error.status in (RPCStatusCode.UNAUTHENTICATED, RPCStatusCode.PERMISSION_DENIED):
        return NotConnected(
            f"the Temporal server denied access: {error.message}; check TEMPORAL_API_KEY and TEMPORAL_TLS*"
        )
    return PlanError(f"the Temporal server rejected the request: {error.message}", SERVER_REFUSED)


async def describe(client: Client, plan: str) -> WorkflowExecutionDescription:
    """Temporal's description of the newest run of the plan's workflow. Raises PlanNotFound, NotConnected."""
    with about(plan):
        return await client.get_workflow_handle(workflow_id(plan)).describe(rpc_timeout=RPC_TIMEOUT)


async def memo_of(execution: WorkflowExecution) -> dict[str, Any]:
    """The memo of a workflow without the fields that cannot be decoded: anybody may start a workflow with such a one,
    and it must not hide all the others from a list."""
    found: dict[str, Any] = {}
    for name, payload in execution.raw_info.memo.fields.items():
        with suppress(Exception):  # decoding alone: whatever a parser raises for the bytes of a payload
            [found[name]] = await execution.data_converter.decode([payload])
    return found


async def heartbeat_of(execution: WorkflowExecutionDescription, pending: PendingActivityInfo) -> dict[str, Any]:
    """The details of a pending activity's last heartbeat (`activities.attempt.heartbeat`).

    Empty if there was none, or if it cannot be read: a worker of another version may have written it.
    """
    with suppress(Exception):  # decoding alone: whatever a parser raises for the bytes of a payload
        [found] = await execution.data_converter.decode(pending.heartbeat_details.payloads)
        return found if isinstance(found, dict) else {}
    return {}


def pending_call(pending: PendingActivityInfo, details: Mapping[str, Any]) -> tuple[str, int]:
    """The step of a pending activity and the number of its call. `details`: of `heartbeat_of`.

    They name a step whose id is shortened in that of the activity.
    """
    step_id, number = of_call(pending.activity_id)
    told = details.get("step")
    return (told if isinstance(told, str) and is_step_of(told, pending.activity_id) else step_id), number


async def ask(client: Client, plan: str, query: str, *arguments: Any, patience: float = PATIENCE) -> Any:
    """The result of a query, as JSON data. An ended plan is read from its end record if possible, without a worker.

    `patience`: seconds to keep trying while a worker polls the queue. Raises PlanNotFound, NotConnected, NoWorker (also
    with the code PLAN_STUCK), and PlanError (QUERY_FAILED) if the plan cannot answer this query.
    """
    return await _answer(client, plan, query, arguments, patience)


async def ask_view(
    client: Client, plan: str, kind: type[V], query: str, *arguments: Any, patience: float = PATIENCE
) -> V:
    """As `ask`, with the result parsed as a view of the type `kind`."""
    answer = await _answer(client, plan, query, arguments, patience, RawValue)
    return kind.read(answer.payload.data if isinstance(answer, RawValue) else answer, views_of_features())


async def plan_file(client: Client, plan: str) -> dict[str, Any]:
    """The current version of the plan as the data of a plan file, without statuses and results."""
    return dict(await ask(client, plan, "file"))


async def _answer(
    client: Client, plan: str, query: str, arguments: Sequence[Any], patience: float, kind: type | None = None
) -> Any:
    from plansurvive.client import end_records  # imports everything that reads a Run, which `plan list` does not need

    handle = client.get_workflow_handle(workflow_id(plan))
    began, seconds = time.monotonic(), QUERY_SECONDS[0]
    while True:
        try:
            # In every round: the plan may end while it is being queried, and then needs no worker any more.
            recorded = await end_records.answer(client, plan, query, arguments)
            if recorded is not None:
                return recorded.value
            left = max(began + patience - time.monotonic(), 0.1)
            timeout = timedelta(seconds=min(seconds, left))
            return await handle.query(query, args=arguments, result_type=kind, rpc_timeout=timeout)
        except WorkflowQueryFailedError as error:
            text = await reason(error, handle)
            if THINKING not in text or time.monotonic() > began + patience:
                raise PlanError(f"plan '{plan_id(plan)}' could not answer: {text}", "QUERY_FAILED") from error
        except RPCError as error:
            if error.status not in _UNANSWERED:
                raise translated(error, plan) from error
            if time.monotonic() > began + patience:
                raise await unanswered(client, plan, patience) from error
        if time.monotonic() > began + UNSERVED_SECONDS:
            await require_worker(client, plan)
            seconds = QUERY_SECONDS[1]
        await asyncio.sleep(0.1)


async def patiently(client: Client, plan: str, say: Callable[[str], None], question: Callable[[], Awaitable[T]]) -> T:
    """Retry `question` until server and worker are available; `say` gets the first error's message.

    Raises NoWorker if the plan has ended: no worker may ever come back for it.
    """
    said = False
    while True:
        try:
            return await question()
        except NotConnected as error:
            if isinstance(error, NoWorker) and await has_ended(client, plan):
                raise
            if not said:
                say(error.message)
            said = True
        await asyncio.sleep(1.0)


async def has_ended(client: Client, plan: str) -> bool:
    """Whether the plan is over, as far as the server knows. Raises PlanNotFound, NotConnected."""
    return (await describe(client, plan)).status is not WorkflowExecutionStatus.RUNNING


async def unanswered(client: Client, plan: str, patience: float) -> PlanError:
    """Why a plan did not answer in time: no connection, a workflow task that keeps failing, or a busy worker."""
    try:
        description = await describe(client, plan)
    except PlanError as error:
        return error
    late = f"plan '{plan_id(plan)}' did not answer within {patience:g} s"
    attempt = description.raw_description.pending_workflow_task.attempt
    if attempt > 1:
        why = f"its workflow task failed or took too long, and is at attempt {attempt}"
        what = "if the machine is not just busy, the worker's log and Temporal's UI show the error"
        return NoWorker(f"{late}: {why}; {what}", STUCK)
    from plansurvive.plans.views.next_actions import worker_command  # imports views, which most commands do without

    return NoWorker(
        f"{late}, although a worker polls queue '{description.task_queue}': it has just stopped, or is overloaded. "
        f"Try again, or start another one: {worker_command(description.task_queue)}"
    )


async def require_worker(client: Client, plan: str) -> None:
    """Raise NoWorker unless a worker polls the plan's task queue. Raises PlanNotFound, NotConnected."""
    queue = (await describe(client, plan)).task_queue
    with about(plan):
        if await listeners(client, queue):
            return
    from plansurvive.plans.views.next_actions import worker_command  # as above

    start = worker_command(queue)
    raise NoWorker(f"no worker polls queue '{queue}', so plan '{plan_id(plan)}' waits; start one: {start}")
