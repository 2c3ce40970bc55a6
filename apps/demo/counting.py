"""What Temporal recorded of the calls of a plan: the proof that none that had ended ran again."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from temporalio.api.enums.v1 import EventType
from temporalio.client import Client

from plansurvive.client.ids import workflow_id

TOOLS = frozenset({"find_files", "read_file", "run_python", "write_file"})


@dataclass(frozen=True)
class Calls:
    """The calls of tools in one plan."""

    completed: int
    twice: int
    """Those that completed more than once."""
    again: int
    """Those that began again, as their worker died under way."""


async def calls_of(client: Client, plan: str) -> Calls:
    """Count the calls in the history of a plan."""
    names: dict[int, str] = {}
    completed, attempts = Counter[str](), dict[str, int]()
    async for event in client.get_workflow_handle(workflow_id(plan)).fetch_history_events():
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
            scheduled = event.activity_task_scheduled_event_attributes
            if scheduled.activity_type.name in TOOLS:
                names[event.event_id] = scheduled.activity_id
        elif event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED:
            started = event.activity_task_started_event_attributes
            if started.scheduled_event_id in names:
                attempts[names[started.scheduled_event_id]] = started.attempt
        elif event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
            number = event.activity_task_completed_event_attributes.scheduled_event_id
            if number in names:
                completed[names[number]] += 1
    twice = sum(count > 1 for count in completed.values())
    return Calls(sum(completed.values()), twice, sum(attempt > 1 for attempt in attempts.values()))
