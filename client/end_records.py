"""What is left of an ended plan, read without a worker: its Run as it stands in the record of `record_end`.

A plan that was terminated has no record, nor have those of versions that did not write one, and what is stored may be
out of reach here: a worker must then replay the history. The answers are those the workflow itself would give, by the
same functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryReverseRequest
from temporalio.client import Client

from client.ids import workflow_id
from plans.activity_io import EndRecord, LargeValue
from plans.execution.messages import Shown, read
from plans.run import Run, run_of
from plans.views import queries
from runtime.value_store import ValueStore

LAST_EVENTS = 8
"""Within the last events stands the record, if there is one: the plan ends in the same workflow task."""
LOOK = timedelta(seconds=10)
"""How long the server may take to show them."""
_ENDED = frozenset({
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED,
})  # fmt: skip


class Answer(NamedTuple):
    """What was answered, which may be nothing."""

    value: Any


@dataclass
class Ended:
    """A plan that has ended, and what it left."""

    known_by: tuple[object, ...]
    """An ended run changes no more: by this it is known again."""
    record: EndRecord
    run: Run | None = None
    """Read when it is needed first."""


_last: WeakKeyDictionary[Client, Ended] = WeakKeyDictionary()
"""The plan read last: whoever looks at one asks several things of it."""


async def kept(client: Client, plan: str) -> Run | None:
    """The Run of a plan that has ended; None while it runs, or when it left no record. Raises RPCError."""
    ended = await _ended(client, plan)
    return await _run(client, ended) if ended else None


async def answer(client: Client, plan: str, query: str, arguments: Sequence[Any]) -> Answer | None:
    """What an ended plan's record answers to a query; None when there is no record, or it cannot answer that.

    Raises RPCError, and PlanError for arguments that cannot be read.
    """
    ended = await _ended(client, plan) if query in queries.QUERIES else None
    if ended is None:
        return None
    if query == "summary":
        return Answer(ended.record.summary)
    if query == "text" and read(Shown, arguments, optional=True).limit == queries.TEXT_STEPS:
        return Answer(ended.record.text)
    run = await _run(client, ended)
    return Answer(queries.QUERIES[query](run, arguments)) if run is not None else None


async def suffices(client: Client, plan: str, query: str) -> bool:
    """Whether an ended plan's record answers this query here, so that no worker is needed. Raises RPCError."""
    ended = await _ended(client, plan)
    return ended is not None and (query in ("summary", "text") or await _run(client, ended) is not None)


async def _ended(client: Client, plan: str) -> Ended | None:
    events = await _last_events(client, workflow_id(plan))
    if not events or events[0].event_type not in _ENDED:
        return None
    known_by = (workflow_id(plan), events[0].event_id, events[0].event_time.ToNanoseconds())
    last = _last.get(client)
    if last is not None and last.known_by == known_by:
        return last
    record = await _record(client, events)
    if record is None:
        return None
    _last[client] = Ended(known_by, record)
    return _last[client]


async def _last_events(client: Client, workflow: str) -> Sequence[HistoryEvent]:
    request = GetWorkflowExecutionHistoryReverseRequest(
        namespace=client.namespace, execution=WorkflowExecution(workflow_id=workflow), maximum_page_size=LAST_EVENTS
    )
    service = client.workflow_service
    return (await service.get_workflow_execution_history_reverse(request, timeout=LOOK)).history.events


async def _record(client: Client, events: Sequence[HistoryEvent]) -> EndRecord | None:
    """The record in the last events; None when there is none, or it cannot be read here."""
    for event in events:
        details = event.marker_recorded_event_attributes.details
        if "result" in details and b'"record_end"' in details["data"].payloads[0].data:
            with suppress(Exception):  # of storage of any kind, or another version's: a worker may know better
                found = await client.data_converter.decode(details["result"].payloads, [EndRecord])
                return EndRecord.model_validate(found[0])
    return None


async def _run(client: Client, ended: Ended) -> Run | None:
    kept, external = ended.record.run, client.data_converter.external_storage
    with suppress(Exception):  # as above
        if ended.run is None and isinstance(kept, str):
            ended.run = run_of(kept)
        elif ended.run is None and external is not None and isinstance(kept, LargeValue):
            ended.run = run_of(await ValueStore(external.drivers[0]).text(kept))
    return ended.run
