"""Answers queries about ended plans without a worker, from the end record (written by `record_end`) in their memo.

The record contains the Run; queries are answered by the same functions that the workflow uses. Terminated plans and
those of old versions have no record, and its storage may not be accessible here: then a worker has to replay the
history.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from temporalio.api.common.v1 import Payload, WorkflowExecution
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryReverseRequest
from temporalio.client import Client, WorkflowExecutionDescription, WorkflowExecutionStatus

from plansurvive.client.feature import read_run
from plansurvive.client.ids import workflow_id
from plansurvive.plans.activity_io import END_RECORD, EndRecord
from plansurvive.plans.execution.messages import Shown, read
from plansurvive.plans.large_value import LargeValue
from plansurvive.plans.run import Run
from plansurvive.plans.views import queries
from plansurvive.runtime.storage import StorageError
from plansurvive.runtime.value_store import ValueStore

LAST_EVENTS = 8
"""How many of the last events to search for the record: it is written in the workflow task that ends the plan."""
RPC_TIMEOUT = timedelta(seconds=10)
"""Deadline of an RPC."""
_ENDED = frozenset({
    WorkflowExecutionStatus.COMPLETED,
    WorkflowExecutionStatus.FAILED,
    WorkflowExecutionStatus.CANCELED,
})  # fmt: skip


class Answer(NamedTuple):
    """The answer to a query; its value may be None."""

    value: Any


@dataclass
class Ended:
    """A plan that has ended, with its end record."""

    key: tuple[object, ...]
    """Cache key; an ended run never changes."""
    record: EndRecord
    run: Run | None = None
    """Loaded on first use."""


_last: WeakKeyDictionary[Client, Ended] = WeakKeyDictionary()
"""Cache of the ended plan read last, per client: one command usually queries the same plan several times."""


async def run_of_ended(client: Client, plan: str) -> Run | None:
    """The Run of an ended plan; None while it is running, or if it has no readable record. Raises RPCError."""
    ended = await _ended(client, plan)
    return await _run(client, ended) if ended else None


async def answer(client: Client, plan: str, query: str, arguments: Sequence[Any]) -> Answer | None:
    """The answer to a query from an ended plan's record; None if there is no record, or it does not answer this query.

    Raises RPCError, and PlanError for invalid arguments.
    """
    ended = await _ended(client, plan) if query in queries.QUERIES else None
    if ended is None:
        return None
    if query == "summary":
        return Answer(ended.record.summary)
    if query == "text" and read(Shown, arguments, optional=True) == Shown(limit=queries.TEXT_STEPS):
        return Answer(ended.record.text)
    run = await _run(client, ended)
    if run is None and query == "text":  # the Run is stored where this machine cannot read it: what the record has
        return Answer(ended.record.text)
    return Answer(queries.QUERIES[query](run, arguments)) if run is not None else None


async def suffices(client: Client, plan: str, query: str) -> bool:
    """Whether an ended plan's record answers this query, so that no worker is needed. Raises RPCError."""
    ended = await _ended(client, plan)
    return ended is not None and (query in ("summary", "text") or await _run(client, ended) is not None)


async def _ended(client: Client, plan: str) -> Ended | None:
    description = await client.get_workflow_handle(workflow_id(plan)).describe(rpc_timeout=RPC_TIMEOUT)
    if description.status not in _ENDED:
        return None
    key = (description.id, description.run_id, description.close_time)
    last = _last.get(client)
    if last is not None and last.key == key:
        return last
    record = await in_memo(client, description) or await in_history(client, description.id)
    if record is None:
        return None
    _last[client] = Ended(key, record)
    return _last[client]


async def in_memo(client: Client, description: WorkflowExecutionDescription) -> EndRecord | None:
    """The record that the memo refers to; None if there is none, or it cannot be read here."""
    with suppress(Exception):  # any storage error, or another version's format: a worker may still be able to read it
        claim: LargeValue | None = await description.memo_value(END_RECORD, None, type_hint=LargeValue)
        return EndRecord.model_validate_json(await _stored(client, claim)) if claim is not None else None
    return None


async def in_history(client: Client, workflow: str) -> EndRecord | None:
    """The record in the last events of the history; None if there is none, or it cannot be read.

    For plans that ended before the memo referred to it, and where storage is not accessible.
    """
    request = GetWorkflowExecutionHistoryReverseRequest(
        namespace=client.namespace, execution=WorkflowExecution(workflow_id=workflow), maximum_page_size=LAST_EVENTS
    )
    service = client.workflow_service
    for event in (await service.get_workflow_execution_history_reverse(request, timeout=RPC_TIMEOUT)).history.events:
        local = local_result(event)
        if local is not None and local.name == "record_end":
            with suppress(Exception):  # as above
                found = await client.data_converter.decode(local.result, [EndRecord])
                return EndRecord.model_validate(found[0])
    return None


class LocalResult(NamedTuple):
    """What a local activity returned, as history has it."""

    name: str
    """Of the activity's type."""
    result: Sequence[Payload]


def local_result(event: HistoryEvent) -> LocalResult | None:
    """The result of a local activity that this event records; None if it records none.

    It is in a marker whose layout is private to the SDK's core; this is the only place that depends on it.
    """
    details = event.marker_recorded_event_attributes.details
    if "result" not in details or "data" not in details or not details["data"].payloads:
        return None
    try:
        name = json.loads(details["data"].payloads[0].data).get("activity_type")
    except (ValueError, AttributeError):
        return None
    return LocalResult(name, list(details["result"].payloads)) if isinstance(name, str) else None


async def _stored(client: Client, claim: LargeValue) -> bytes:
    """The stored bytes of a claim. Raises StorageError or ToolError, or an error of the storage driver."""
    external = client.data_converter.external_storage
    if external is None:
        raise StorageError("this client has no external storage; connect with runtime.connect.reach")
    return await ValueStore(external.drivers[0]).text(claim)


async def _run(client: Client, ended: Ended) -> Run | None:
    stored = ended.record.run
    with suppress(Exception):  # as above
        if ended.run is None:
            text = stored if isinstance(stored, str) else await _stored(client, stored)
            ended.run = read_run(text)
    return ended.run
