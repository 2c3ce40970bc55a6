"""Schedules driven from tests: each has a name of its own, and nothing of them is left on the server."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from temporalio.client import Client

from plansurvive.apps.schedules.control import delete_schedule, trigger_schedule
from plansurvive.apps.schedules.create import Rules, create_schedule
from plansurvive.apps.schedules.spec import Timing
from plansurvive.apps.schedules.views import ScheduleView, show_schedule
from plansurvive.client import runs
from plansurvive.client.decisions import Choice
from plansurvive.client.errors import PlanNotFound
from plansurvive.client.listing import Listed
from plansurvive.plans.run import Options
from tests.kit.driving import terminated
from tests.kit.waiting import until

GATE = {"id": "gate", "tool": "create_directory", "args": {"path": "made"}, "requiresApproval": True}
"""A step that waits for a person: a run that is in progress for as long as a test wants."""
LOOK = {"id": "look", "tool": "list_directory", "args": {"path": "."}}
FAILS = {"id": "fails", "tool": "read_file", "args": {"path": "missing"}, "retry": {"attempts": 1}}
YEARLY = Timing(cron=["0 0 1 1 *"])
"""So seldom that no run starts by itself."""


@dataclass
class Schedules:
    """The schedules of one test."""

    client: Client
    queue: str
    workspace: Path
    names: list[str] = field(default_factory=list)

    async def create(
        self, *steps: dict[str, Any], timing: Timing = YEARLY, rules: Rules | None = None, **plan: Any
    ) -> str:
        """Create a schedule; returns its name."""
        name = f"s{len(self.names)}-{self.queue}"
        options = Options(workspace=str(self.workspace), by="ann")
        await create_schedule(
            self.client, name, {"steps": list(steps), **plan}, timing, rules=rules, options=options, queue=self.queue
        )
        self.names.append(name)
        return name

    async def trigger(self, name: str, overlap: str | None = None) -> str:
        """Start a run; returns its plan id, and waits until the index has it."""
        found = await trigger_schedule(self.client, name, overlap)
        assert found.plan_id, found.why

        async def is_listed() -> bool:
            return found.plan_id in [each.plan_id for each in await self.runs(name)]

        await until(is_listed, "the run is listed")
        return found.plan_id

    async def runs(self, name: str) -> list[Listed]:
        """The runs of a schedule in the order of their times."""
        found = [each async for each in runs.list_plans(self.client, schedule=name)]
        return sorted(found, key=lambda each: each.plan_id)

    async def statuses(self, name: str) -> list[str]:
        """Their statuses; of one that waits for a person: `waits`."""
        return ["waits" if each.waiting else each.status.value for each in await self.runs(name)]

    async def until_statuses(self, name: str, *wanted: str) -> list[Listed]:
        """The runs, as soon as they have these statuses."""

        async def have() -> bool:
            return await self.statuses(name) == list(wanted)

        await until(have, f"the runs are {wanted}")
        return await self.runs(name)

    async def until_shown(self, name: str, holds: Any, what: str) -> ScheduleView:
        """The first view of a schedule for which something holds."""

        async def look() -> ScheduleView | None:
            view = await show_schedule(self.client, name)
            return view if holds(view) else None

        found: ScheduleView = await until(look, what)
        return found

    async def approve(self, plan: str) -> None:
        """Let a run end that waits at GATE."""
        await runs.approve(self.client, plan, Choice(step_id="gate", by="ann"))

    async def clear(self) -> None:
        """Delete the schedules, and end their runs."""
        for name in self.names:
            try:
                await delete_schedule(self.client, name)
            except PlanNotFound:
                continue
        for name in self.names:
            for each in await self.runs(name):
                await terminated(self.client, each.workflow_id)
