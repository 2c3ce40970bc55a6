"""Histories as they would be if a query had come while the plan was checked.

The worker answers the query before the workflow has gone on from the check, which is a local activity, and asks for
another workflow task for the rest. On replay the workflow goes on at once, so no patch of that second task is known
yet: whatever a plan does in its first turn must not depend on `workflow.patched` (docs/temporal.md, section 10).
"""

from __future__ import annotations

from typing import Any

KINDS = [f"EVENT_TYPE_WORKFLOW_TASK_{name}" for name in ("SCHEDULED", "STARTED", "COMPLETED")]


def split(events: list[dict[str, Any]]) -> list[dict[str, Any]] | None:
    """The events, with the first workflow task ended by the check's result; None if it did nothing more in it."""
    first = next((at for at, event in enumerate(events) if event["eventType"] == KINDS[2]), len(events))
    if len(events) < first + 3 or not all(_is_of(event, first + 1) for event in events[first + 1 : first + 3]):
        return None
    if events[first + 1].get("markerRecordedEventAttributes", {}).get("markerName") != "core_local_activity":
        return None
    numbers = [event["eventId"] for event in events[: first + 1] if event["eventType"] in KINDS]
    second = {number: str(first + 3 + at) for at, number in enumerate(numbers)}
    assert len(second) == len(KINDS), "one workflow task"
    task = [_renumbered(event, second) for event in events[: first + 1] if event["eventId"] in second]
    later = {event["eventId"]: str(int(event["eventId"]) + len(KINDS)) for event in events[first + 2 :]}
    rest = [_renumbered(event, later | {str(first + 1): second[str(first + 1)]}) for event in events[first + 2 :]]
    return [*events[: first + 2], *task, *rest]


def _is_of(event: dict[str, Any], task: int) -> bool:
    """Whether the event is a command of the workflow task that was completed by the event of this number."""
    found = next(value for name, value in event.items() if name.endswith("Attributes"))
    return bool(found.get("workflowTaskCompletedEventId") == str(task))


def _renumbered(value: Any, numbers: dict[str, str]) -> Any:
    if isinstance(value, list):
        return [_renumbered(each, numbers) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name: numbers.get(each, each) if name.lower().endswith("eventid") else _renumbered(each, numbers)
        for name, each in value.items()
    }
