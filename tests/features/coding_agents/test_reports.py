"""What the agent tells while it works is reported once and whole, also where its turn ends during a report."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from temporalio.client import Client

from plansurvive.activities.workspace.effect_log import Effects
from plansurvive.features.coding_agents.line import Line
from plansurvive.features.coding_agents.model import ReportProgress, ReportTasks
from plansurvive.features.coding_agents.session import Session
from plansurvive.runtime.storage import LocalDirectory
from plansurvive.runtime.value_store import ValueStore
from tests.activities.attempts import Attempts

acp = pytest.importorskip("acp")


@dataclass
class SlowLine(Line):
    """A line on which each message takes until `arrives` is set; `arrived` are those that did."""

    arrives: asyncio.Event = field(default_factory=asyncio.Event)
    under_way: asyncio.Event = field(default_factory=asyncio.Event)
    arrived: list[Any] = field(default_factory=list)

    async def tasks(self, tasks: ReportTasks) -> None:
        await self._take(tasks)

    async def progress(self, progress: ReportProgress) -> bool:
        await self._take(progress)
        return True

    async def _take(self, message: Any) -> None:
        self.under_way.set()
        await self.arrives.wait()
        self.arrived.append(message)


@pytest.fixture
def line() -> SlowLine:
    return SlowLine(cast("Client", None), "agent-a")


@pytest.fixture
def session(workspace: Path, state_dir: Path, line: SlowLine) -> Session:
    values = ValueStore(LocalDirectory(state_dir / "values"))
    attempts = Attempts(workspace, values, Effects.at(state_dir / "effects"))
    return Session("scripted", attempts.context(), line, None, has_network=False, say=lambda _: None)


async def ended_during_a_report(session: Session, line: SlowLine, *meanwhile: str) -> None:
    """A report is under way when the agent makes these calls and the turn ends, which reports the rest and stops the
    reports that are made regularly.
    """
    regular = asyncio.create_task(session.report())
    await line.under_way.wait()
    for title in meanwhile:
        await made(session, title)
    last = asyncio.create_task(session.report())
    await asyncio.sleep(0)
    line.arrives.set()
    await last
    regular.cancel()
    await asyncio.gather(regular, return_exceptions=True)


async def test_a_list_of_tasks_that_is_on_its_way_when_the_turn_ends_arrives(session: Session, line: SlowLine) -> None:
    await session.session_update("s", acp.update_plan([acp.plan_entry("the last task")]))
    await ended_during_a_report(session, line)
    assert [each.tasks for each in line.arrived] == [["the last task"]]


async def test_calls_that_are_on_their_way_when_the_turn_ends_are_reported_once(
    session: Session, line: SlowLine
) -> None:
    await made(session, "first")
    await ended_during_a_report(session, line, "second")
    assert [call.title for report in line.arrived for call in report.calls] == ["first", "second"]


async def made(session: Session, title: str) -> None:
    """The agent has made a call of a tool of its own."""
    await session.session_update("s", acp.start_tool_call(title, title, kind="search", status="pending"))
    await session.session_update("s", acp.update_tool_call(title, status="completed"))
