"""Plans driven from tests: start one on the real server, look at it, send it messages, read its history.

A started plan is asked through Temporal alone (signals, updates, queries, histories), so that what is tested is the
contract. Every plan gets an execution timeout: a mistake is a failed test, never a hang.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle, WorkflowHistory
from temporalio.exceptions import TimeoutError
from temporalio.service import RPCError

from tests.kit.waiting import until

CEILING = timedelta(minutes=15)
"""How long a plan may take: longer than anything that a test waits for while it runs."""
LEDGER = "ledger.txt"
"""The file in the workspace into which the tool `work` writes what it does."""

GO = "go.txt"
WAITS = {"until": GO}
"""Arguments of a step `work` that goes on until it is told to end: what happens meanwhile has all the time it needs."""

View = dict[str, Any]


@dataclass(frozen=True)
class Started:
    """One plan on the server."""

    client: Client
    id: str

    @property
    def handle(self) -> WorkflowHandle[Any, Any]:
        """Its newest run."""
        return self.client.get_workflow_handle(self.id)

    async def signal(self, name: str, *arguments: Any) -> None:
        """Send a signal as it stands."""
        await self.handle.signal(name, args=arguments)

    async def approve(self, step_id: str, **more: Any) -> None:
        """Approve a step by signal."""
        await self.signal("approve", {"stepId": step_id, **more})

    async def deny(self, step_id: str, **more: Any) -> None:
        """Deny a step by signal."""
        await self.signal("deny", {"stepId": step_id, **more})

    async def view(self) -> View:
        """The joined view."""
        view: View = await self.handle.query("plan")
        return view

    async def until(self, holds: Callable[[View], Any], what: str) -> View:
        """The first view for which something holds; until a worker has the plan there is none."""

        async def look() -> View | None:
            try:
                view = await self.view()
            except RPCError:
                return None
            return view if holds(view) else None

        found: View = await until(look, what)
        return found

    async def until_status(self, step_id: str, *wanted: str) -> View:
        """The first view in which a step has one of these statuses."""
        return await self.until(lambda view: step(view, step_id)["status"] in wanted, f"{step_id} is {wanted}")

    async def until_asked(self, step_id: str) -> View:
        """The first view in which a step waits for a person."""
        return await self.until(lambda view: "awaiting" in step(view, step_id), f"{step_id} waits for approval")

    async def until_logged(self, kind: str, text: str = "") -> View:
        """The first view whose log has such a line."""

        def has(view: View) -> bool:
            return any(entry["kind"] == kind and text in entry["text"] for entry in view["log"])

        return await self.until(has, f"log line {kind}: {text}")

    async def ended(self) -> View:
        """The view after the end, however it ended."""
        failure: BaseException | None = None
        try:
            await self.handle.result()
        except WorkflowFailureError as error:
            failure = error.cause
        assert not isinstance(failure, TimeoutError), f"{self.id} ran into its execution timeout"
        # A query that got no answer in its time is asked again, as by every client of ours (`client.rpc.ask`).
        return await self.until(lambda _: True, f"{self.id} answers after its end")

    async def histories(self) -> list[WorkflowHistory]:
        """The history of every run of the workflow, first one first."""
        found: list[WorkflowHistory] = []
        run_id: str | None = (await self.handle.describe()).raw_description.workflow_execution_info.first_run_id
        while run_id:
            history = await self.client.get_workflow_handle(self.id, run_id=run_id).fetch_history()
            found.append(history)
            last = history.events[-1]
            run_id = last.workflow_execution_continued_as_new_event_attributes.new_execution_run_id or None
        return found

    async def events(self) -> list[HistoryEvent]:
        """The events of all runs, in order."""
        return [event for history in await self.histories() for event in history.events]

    async def scheduled(self) -> dict[str, Any]:
        """The attributes of every activity scheduled, by activity id."""
        wanted = EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
        attributes = [e.activity_task_scheduled_event_attributes for e in await self.events() if e.event_type == wanted]
        return {each.activity_id: each for each in attributes}


@dataclass(frozen=True)
class Plans:
    """Starts plans on one queue, in one workspace."""

    client: Client
    queue: str
    workspace: Path
    options: Mapping[str, Any] = field(default_factory=dict)
    ceiling: timedelta = CEILING
    task_timeout: timedelta | None = None
    """Of a workflow task: how long the server waits before it repeats one that was not answered; None: ten seconds."""

    async def start(
        self, steps: list[dict[str, Any]], options: Mapping[str, Any] | None = None, **plan: Any
    ) -> Started:
        """Start a plan of these steps."""
        given = {"workspace": str(self.workspace), **self.options, **(options or {})}
        return await self.start_with({"plan": {"steps": steps, **plan}, "options": given})

    async def start_with(self, *arguments: Any) -> Started:
        """Start the workflow with whatever arguments."""
        workflow_id = f"plan-{uuid.uuid4().hex[:12]}"
        await self.client.start_workflow(
            "PlanWorkflow", args=arguments, id=workflow_id, task_queue=self.queue, execution_timeout=self.ceiling,
            task_timeout=self.task_timeout,
        )  # fmt: skip
        return Started(self.client, workflow_id)

    async def run(self, steps: list[dict[str, Any]], options: Mapping[str, Any] | None = None, **plan: Any) -> View:
        """Start a plan and wait for its end."""
        return await (await self.start(steps, options, **plan)).ended()

    def go(self) -> None:
        """Let the steps end that wait for it (`WAITS`)."""
        (self.workspace / GO).touch()

    @property
    def ledger(self) -> list[list[str]]:
        """What the tool `work` wrote: lines of `start NAME ATTEMPT` and `end NAME ATTEMPT`."""
        path = self.workspace / LEDGER
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def step(view: View, step_id: str) -> dict[str, Any]:
    """One step of a view."""
    found: dict[str, Any] = next(each for each in view["steps"] if each["id"] == step_id)
    return found


def statuses(view: View) -> dict[str, str]:
    """The status of every step."""
    return {each["id"]: each["status"] for each in view["steps"]}


def work(step_id: str, *needs: str, seconds: float = 0.0, **more: Any) -> dict[str, Any]:
    """A step that writes into the ledger when it starts and when it ends."""
    args = {"name": step_id, "seconds": seconds, **more.pop("args", {})}
    return {"id": step_id, "tool": "work", "args": args, "dependsOn": list(needs), **more}


def refusals(view: View) -> list[str]:
    """The texts of refused messages."""
    return [entry["text"] for entry in view["log"] if entry["kind"] == "refused"]


async def count(client: Client, query: str) -> int:
    """How many workflows the server's index finds."""
    return (await client.count_workflows(query)).count


async def terminated(client: Client, workflow_id: str) -> None:
    """End a workflow that a test leaves behind, at once and without a worker; one that has ended is left alone."""
    with suppress(RPCError):
        await client.get_workflow_handle(workflow_id).terminate("left behind by a test")
