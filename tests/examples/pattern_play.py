"""A started plan of a control-flow pattern, what tests do with it, and how it should end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from temporalio.api.common.v1 import Payloads
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client

from plansurvive.features.express.model import SEGMENT, SegmentEnd
from tests.kit.driving import Plans, Started, View, step
from tests.kit.waiting import until

SCHEDULED, COMPLETED = EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED, EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED


@dataclass(frozen=True)
class Ending:
    """How a plan should have ended: its files, values of steps, the steps that are not completed."""

    view: View
    files: list[str]
    values: Mapping[str, Any] = field(default_factory=dict)
    not_completed: Mapping[str, str] = field(default_factory=dict)
    status: str = "completed"


@dataclass(frozen=True)
class Play:
    """One started plan, and what tests do with it."""

    started: Started
    client: Client
    workspace: Path

    @classmethod
    async def begin(cls, client: Client, queue: str, workspace: Path, plan: dict[str, Any]) -> Play:
        """Start the plan."""
        started = await Plans(client, queue, workspace).start(**plan)
        return cls(started, client, workspace)

    async def ends(self, *files: str, **more: Any) -> Ending:
        """Wait for the end; `files`: those that the plan made. Keywords as in Ending."""
        return Ending(await self.started.ended(), list(files), **more)

    async def event(self, name: str, **data: Any) -> None:
        """Send an event."""
        await self.started.signal("event", {"name": name, "data": data})

    async def edit(self, *edits: Mapping[str, Any]) -> None:
        """Edit the plan."""
        await self.started.handle.execute_update("edit", {"edits": list(edits)})

    async def until(self, step_id: str, *statuses: str) -> View:
        """The first view in which a step has one of these statuses."""
        return await self.started.until_status(step_id, *statuses)

    async def until_waiting(self, step_id: str) -> View:
        """The first view in which a step waits for an event or a person, as itself or inside."""
        return await self.started.until(lambda view: _waits(step(view, step_id)), f"{step_id} waits")

    async def until_file(self, path: str) -> None:
        """Wait until a file is there."""
        await until((self.workspace / path).exists, f"{path} is there")

    async def cancel_child(self, step_id: str) -> None:
        """Cancel the child plan of a step, once that runs."""
        view = await self.started.until(lambda view: _child(step(view, step_id)), f"{step_id} has a child plan")
        await self.client.get_workflow_handle(f"plan-{_child(step(view, step_id))}").cancel()

    def files(self, pattern: str = "**/*") -> list[str]:
        """The files in the workspace."""
        found = (path for path in self.workspace.glob(pattern) if path.is_file())
        return sorted(path.relative_to(self.workspace).as_posix() for path in found)

    def text(self, path: str) -> str:
        """The content of a file."""
        return (self.workspace / path).read_text()

    def left_over(self, view: View) -> dict[str, str]:
        """The steps that are not completed."""
        return {each["id"]: each["status"] for each in view["steps"] if each["status"] != "completed"}

    def value(self, view: View, step_id: str) -> Any:
        """The value of a step."""
        return (step(view, step_id).get("result") or {}).get("value")

    async def order(self) -> list[str]:
        """The calls of steps as they began (`+id`) and completed (`-id`), those of segments as these report them."""
        names: dict[int, str] = {}
        found: list[str] = []
        for event in await self.started.events():
            if event.event_type == SCHEDULED:
                scheduled = event.activity_task_scheduled_event_attributes
                names[event.event_id] = scheduled.activity_id
                if scheduled.activity_type.name != SEGMENT:
                    found.append(f"+{names[event.event_id]}")
            elif event.event_type == COMPLETED:
                completed = event.activity_task_completed_event_attributes
                name = names[completed.scheduled_event_id]
                found += await self._inside(completed.result) if name.startswith("~") else [f"-{name}"]
        return found

    async def _inside(self, result: Payloads) -> list[str]:
        [data] = await self.client.data_converter.decode(result.payloads)
        calls = [call for call in SegmentEnd.model_validate(data).calls if call.returned is not None]
        ends = [(call.ended, 0, f"-{call.step_id}") for call in calls]
        return [each for *_, each in sorted([*((call.began, 1, f"+{call.step_id}") for call in calls), *ends])]


def never_together(order: list[str]) -> bool:
    """Whether no activity began while another one ran."""
    return all(one[0] == "+" and one[1:] == two[1:] for one, two in zip(order[::2], order[1::2], strict=True))


def _waits(found: Mapping[str, Any]) -> bool:
    return bool(found.get("awaiting")) or found["status"] == "running"


def _child(found: Mapping[str, Any]) -> str:
    return str((found.get("child") or {}).get("planId") or "")
