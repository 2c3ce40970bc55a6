"""What is left of an ended plan, read without a worker: its Run as it stands in the record of `write_summary`.

A plan that was terminated has no record, nor have those of versions that did not write one: a worker must then replay
their history. The answers are those the workflow itself would give, by the same functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from pydantic import ValidationError
from temporalio.api.common.v1 import Payloads, WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryReverseRequest
from temporalio.client import Client

from activities.storage import StorageError
from client.plan_ids import workflow_id
from plans import inquiry
from plans.calls import EndRecord
from plans.run import Run

LAST_EVENTS = 8
"""Within the last events stands the record, if there is one: the plan ends in the same workflow task."""
_ENDED = frozenset({
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED,
})  # fmt: skip
_read: WeakKeyDictionary[Client, tuple[object, Run]] = WeakKeyDictionary()
"""The Run read last, and by what it is known again: an ended run changes no more."""


class Answer(NamedTuple):
    """What was answered, which may be nothing."""

    value: Any


async def kept(client: Client, plan: str) -> Run | None:
    """The Run of a plan that has ended; None while it runs, or when it left no record. Raises RPCError."""
    events = await _last_events(client, workflow_id(plan))
    if not events or events[0].event_type not in _ENDED:
        return None
    known_by = (workflow_id(plan), events[0].event_id, events[0].event_time.ToNanoseconds())
    known, run = _read.get(client, (None, None))
    if known == known_by:
        return run
    for event in events:
        details = event.marker_recorded_event_attributes.details
        if "result" in details and b'"write_summary"' in details["data"].payloads[0].data:
            run = await _run(client, details["result"])
            if run is not None:
                _read[client] = (known_by, run)
            return run
    return None


async def answer(client: Client, plan: str, query: str, arguments: Sequence[Any]) -> Answer | None:
    """What an ended plan's record answers to a query; None when there is no record, or it cannot answer that."""
    if query not in inquiry.QUERIES:
        return None
    run = await kept(client, plan)
    return Answer(inquiry.QUERIES[query](run, arguments)) if run is not None else None


async def _last_events(client: Client, workflow: str) -> Sequence[HistoryEvent]:
    request = GetWorkflowExecutionHistoryReverseRequest(
        namespace=client.namespace, execution=WorkflowExecution(workflow_id=workflow), maximum_page_size=LAST_EVENTS
    )
    return (await client.workflow_service.get_workflow_execution_history_reverse(request)).history.events


async def _run(client: Client, result: Payloads) -> Run | None:
    """The Run in a record; None when the record cannot be read here: its worker may still know better."""
    try:
        record = (await client.data_converter.decode(result.payloads, [EndRecord]))[0]
        return Run.model_validate(record.run) if record.run else None
    except (StorageError, ValidationError):
        return None
