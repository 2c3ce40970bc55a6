"""The record of a run, as its history has it: how it was started, what its activities were asked and gave, its end.

All runs of a workflow that continued as new are one record. Payloads are decrypted and fetched from storage here, so
that whatever is missing is found before anything is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import EventType
from temporalio.api.failure.v1 import Failure
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client
from temporalio.common import RawValue
from temporalio.converter import DataConverter
from temporalio.service import RPCError, RPCStatusCode

from plansurvive.client.end_records import local_result
from plansurvive.client.errors import PlanNotFound
from plansurvive.client.ids import workflow_id
from plansurvive.client.rpc import RPC_TIMEOUT, translated
from plansurvive.runtime.storage import StorageError

AGENT, PLAN = "AgentWorkflow", "PlanWorkflow"


class RecordGone(PlanNotFound):
    """What was recorded of a run is not there any more, or not all of it."""

    code = "RECORD_GONE"


@dataclass
class Done:
    """An activity as it was recorded. Neither result nor failure: it had not ended."""

    name: str
    input: list[Payload]
    began: datetime
    result: list[Payload] | None = None
    failure: Failure | None = None
    cancelled: bool = False
    seconds: float = 0.0
    """From when it was scheduled to its end."""


@dataclass
class Message:
    """A signal or an update that the run was sent and took."""

    name: str
    arguments: list[Payload]


@dataclass
class Record:
    """One workflow's record."""

    workflow_id: str
    kind: str
    """Type of the workflow."""
    run_id: str
    """Of its first run."""
    queue: str
    started: datetime
    arguments: list[Payload]
    done: list[Done] = field(default_factory=list)
    """Its activities, in the order in which they were scheduled; local ones, in which they ended."""
    messages: list[Message] = field(default_factory=list)
    children: list[str] = field(default_factory=list)
    """Workflow ids of the agents and plans that its steps started."""
    result: list[Payload] | None = None
    failure: Failure | None = None
    has_ended: bool = False
    """By itself: it was not cancelled or terminated."""

    def of(self, name: str) -> list[Done]:
        """Its activities of one type."""
        return [each for each in self.done if each.name == name]


async def read(client: Client, plan: str) -> Record:
    """The record of a plan or agent. Raises RecordGone, BadPlanId, NotConnected; KeyMissing if it cannot be decrypted.

    RecordGone: the server has no such workflow (any more), or what it refers to is not in the storage.
    """
    name = workflow_id(plan)
    try:
        reader = Reader(client.data_converter, name)
        run_id: str | None = await _first_run(client, name)
        while run_id:
            following = None
            async for event in client.get_workflow_handle(name, run_id=run_id).fetch_history_events():
                await reader.take(event)
                following = event.workflow_execution_continued_as_new_event_attributes.new_execution_run_id or None
            run_id = following
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            raise RecordGone(_GONE.format(name)) from error
        raise translated(error, plan) from error
    except StorageError as error:
        raise RecordGone(f"the record of '{name}' is not whole any more: {error.message}") from error
    if reader.record is None:
        raise RecordGone(_GONE.format(name))
    return reader.record


_GONE = (
    "the server has no history of '{}': either there never was such a run, or the server's retention or `plan prune`"
    " has removed it, and what is not recorded cannot be replayed; `plan list` and `plan history` show the runs"
)


async def _first_run(client: Client, name: str) -> str | None:
    description = await client.get_workflow_handle(name).describe(rpc_timeout=RPC_TIMEOUT)
    return description.raw_description.workflow_execution_info.first_run_id or description.run_id


@dataclass
class Reader:
    """Takes the events of all runs of a workflow in order."""

    converter: DataConverter
    name: str
    """Of the workflow: its id."""
    record: Record | None = None
    _open: dict[int, Done] = field(default_factory=dict)

    async def take(self, event: HistoryEvent) -> None:
        """Add what an event says."""
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
            self._open.clear()
            if self.record is None:
                self.record = await self._started(event)
            return
        if self.record is None:
            return
        if event.event_type == EventType.EVENT_TYPE_MARKER_RECORDED:
            await self._local(self.record, event)
        elif event.event_type in _OF_ACTIVITIES:
            await self._activity(self.record, event)
        else:
            await self._other(self.record, event)

    async def _started(self, event: HistoryEvent) -> Record:
        said = event.workflow_execution_started_event_attributes
        return Record(
            workflow_id=self.name,
            kind=said.workflow_type.name,
            run_id=said.original_execution_run_id,
            queue=said.task_queue.name,
            started=_time(event),
            arguments=await self._plain(said.input.payloads),
        )

    async def _local(self, record: Record, event: HistoryEvent) -> None:
        local = local_result(event)
        if local is not None:
            found = await self._plain(local.result)
            record.done.append(Done(local.name, [], _time(event), result=found))

    async def _activity(self, record: Record, event: HistoryEvent) -> None:
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
            said = event.activity_task_scheduled_event_attributes
            done = Done(said.activity_type.name, await self._plain(said.input.payloads), _time(event))
            self._open[event.event_id] = done
            record.done.append(done)
            return
        attributes: Any = getattr(event, event.WhichOneof("attributes") or "")
        ended = self._open.pop(attributes.scheduled_event_id, None)
        if ended is None:
            return
        ended.seconds = (_time(event) - ended.began).total_seconds()
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
            ended.result = await self._plain(attributes.result.payloads)
        elif event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_CANCELED:
            ended.cancelled = True
        else:
            ended.failure = await self._plain_failure(attributes.failure)

    async def _other(self, record: Record, event: HistoryEvent) -> None:
        kind = event.event_type
        if kind == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
            signal = event.workflow_execution_signaled_event_attributes
            record.messages.append(Message(signal.signal_name, await self._plain(signal.input.payloads)))
        elif kind == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED:
            update = event.workflow_execution_update_accepted_event_attributes.accepted_request.input
            record.messages.append(Message(update.name, await self._plain(update.args.payloads)))
        elif kind == EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED:
            child = event.start_child_workflow_execution_initiated_event_attributes
            if child.workflow_type.name in (AGENT, PLAN):
                record.children.append(child.workflow_id)
        elif kind == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
            result = event.workflow_execution_completed_event_attributes.result
            record.result, record.has_ended = await self._plain(result.payloads), True
        elif kind == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
            failure = event.workflow_execution_failed_event_attributes.failure
            record.failure, record.has_ended = await self._plain_failure(failure), True

    async def _plain(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Payloads as the workflow saw them. Raises StorageError, KeyMissing."""
        if not payloads:
            return []
        found = await self.converter.decode(list(payloads), [RawValue] * len(payloads))
        return [each.payload for each in found]

    async def _plain_failure(self, failure: Failure) -> Failure:
        """A failure with plain texts and details. Raises as `_plain`."""
        plain = Failure()
        plain.CopyFrom(failure)
        for each in _chain(plain):
            if each.HasField("encoded_attributes"):
                [said] = await self.converter.decode([each.encoded_attributes])
                each.ClearField("encoded_attributes")
                each.message, each.stack_trace = str(said.get("message", "")), ""
            for info, name in _DETAILS:
                if not each.HasField(info):  # reading a field of another kind of failure would make it one of that
                    continue
                details = getattr(getattr(each, info), name).payloads
                shown = await self._plain(list(details))
                del details[:]
                details.extend(shown)
        return plain


_DETAILS: tuple[tuple[Any, str], ...] = (
    ("application_failure_info", "details"),
    ("timeout_failure_info", "last_heartbeat_details"),
)
_OF_ACTIVITIES = frozenset({
    EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED,
    EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED,
    EventType.EVENT_TYPE_ACTIVITY_TASK_FAILED,
    EventType.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT,
    EventType.EVENT_TYPE_ACTIVITY_TASK_CANCELED,
})  # fmt: skip


def _chain(failure: Failure) -> Iterator[Failure]:
    """A failure and its causes."""
    yield failure
    if failure.HasField("cause"):
        yield from _chain(failure.cause)


def _time(event: HistoryEvent) -> datetime:
    return event.event_time.ToDatetime().replace(tzinfo=UTC)
