"""The review screen on a real plan: a plan in review on the real server, with a worker, and a pilot at the keys."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from rich.style import Style
from temporalio.client import Client
from temporalio.worker import Worker
from textual.pilot import Pilot
from textual.strip import Strip
from textual.widgets import OptionList, Static

from plansurvive.apps.review.app import ReviewApp
from plansurvive.client import runs
from plansurvive.client.local_tools import tools_of
from plansurvive.plans.editing.edits import Edit
from plansurvive.plans.run import Options
from plansurvive.runtime.settings import Settings
from tests.kit.driving import Started, terminated
from tests.kit.waiting import until

WRITE = {
    "id": "write",
    "tool": "write_file",
    "args": {"path": "a.txt", "content": "one\ntwo"},
    "description": "Write it",
}
COPY = {"id": "copy", "tool": "write_file", "args": {"path": "b.txt", "content": "$read"}, "description": "Copy it"}
READ = {"id": "read", "tool": "read_file", "args": {"path": "a.txt"}, "dependsOn": ["write"], "description": "Read it"}
LIST = {"id": "list", "tool": "list_directory", "args": {}, "description": "What is there?"}
REMOVE = {
    "id": "remove",
    "tool": "delete_file",
    "args": {"path": "a.txt"},
    "dependsOn": ["copy"],
    "description": "Tidy",
}
STEPS = [WRITE, READ, COPY, LIST, REMOVE]


@dataclass
class Screen:
    """A review screen somebody sits at."""

    app: ReviewApp
    pilot: Pilot[str]
    client: Client

    async def press(self, *keys: str) -> None:
        """Press keys, one after the other."""
        await self.pilot.press(*keys)

    async def type(self, text: str) -> None:
        """Type a text."""
        await self.pilot.press(*("space" if each == " " else each for each in text))

    async def until(self, holds: Callable[[], Any], what: str) -> Any:
        """Wait until something holds."""

        async def look() -> Any:
            await self.pilot.pause()
            return holds()

        try:
            return await until(look, what)
        except AssertionError as error:
            raise AssertionError(f"{error}; on the screen:\n{self.text}") from None

    async def until_shown(self, text: str) -> None:
        """Wait until a text stands on the screen."""
        await self.until(lambda: text in self.text, f"{text!r} on the screen")

    async def choose(self, step_id: str) -> None:
        """Put the cursor on a step."""
        self.app.choose(step_id)
        await self.until(lambda: self.app.chosen and self.app.chosen.id == step_id, f"{step_id} chosen")

    async def open_form(self, shows: str) -> None:
        """Edit the step under the cursor; wait until its form shows a text."""
        await self.press("enter")
        await self.until_shown(shows)

    async def append(self, text: str) -> None:
        """Type at the end of the field."""
        await self.press("end")
        await self.type(text)

    async def saved_as(self, version: int) -> list[dict[str, Any]]:
        """Save what was typed; the steps' arguments in that version of the plan."""
        await self.press("ctrl+s")
        await self.until_version(version)
        return [step.args for step in (await self.view()).steps]

    async def until_version(self, version: int) -> None:
        """Wait until the screen knows a version of the plan, and the form that made it is closed."""
        await self.until(lambda: self.app.view.version == version and self.is_bare, f"version {version}")

    async def until_status(self, status: str) -> None:
        """Wait until the screen knows that the plan has come so far."""
        await self.until(lambda: self.app.view.status == status, status)

    @property
    def text(self) -> str:
        """What stands on the screen."""
        return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in self._strips())

    def style_of(self, text: str) -> Style:
        """The style of the first piece of the screen that holds a text."""
        segments = [segment for strip in self._strips() for segment in strip if text in segment.text]
        assert segments, f"{text!r} is not in one piece on the screen:\n{self.text}"
        return segments[0].style or Style()

    def _strips(self) -> list[Strip]:
        return self.app.screen._compositor.render_strips()

    @property
    def is_bare(self) -> bool:
        """Whether no form or question lies over the plan."""
        return len(self.app.screen_stack) == 1

    @property
    def order(self) -> list[str]:
        """The ids of the rows."""
        found = self.app.screen_stack[0].query_one("#steps", OptionList)
        return [str(option.id) for option in found.options]

    @property
    def said(self) -> str:
        """The remark at the bottom."""
        return str(self.app.screen_stack[0].query_one("#said", Static).render())

    async def view(self) -> runs.PlanView:
        """The plan as it is."""
        return await runs.show(self.client, self.app.plan)

    async def by_another(self, *edits: Edit) -> None:
        """Somebody else changes the plan."""
        await runs.edit(self.client, self.app.plan, edits, by="ann")


Open = Callable[..., AbstractAsyncContextManager[Screen]]
Start = Callable[..., Awaitable[str]]


@asynccontextmanager
async def screen_of(
    client: Client, settings: Settings, name: str, size: tuple[int, int] = (80, 24)
) -> AsyncIterator[Screen]:
    """Bob at the screen of a plan."""
    tools = await tools_of(client, name, settings)
    app = ReviewApp(client, name, "bob", tools, await runs.show(client, name))
    async with app.run_test(size=size) as pilot:
        yield Screen(app, pilot, client)


@pytest.fixture
async def start_unserved(temporal_client: Client, queue: str, workspace: Path) -> AsyncIterator[Start]:
    """Start a plan of these steps, in review unless said otherwise; terminated at the end. The test brings a worker."""
    begun: list[runs.Started] = []

    async def start_plan(*steps: dict[str, Any], review: bool = True, title: str = "Copy a file") -> str:
        options = Options(workspace=str(workspace), review=review)
        plan = {"title": title, "steps": list(steps or STEPS)}
        begun.append(await runs.start(temporal_client, plan, options=options, queue=queue))
        opened = Started(temporal_client, begun[-1].workflow_id)
        await opened.until(lambda view: view["status"] != "draft", "a worker has checked the plan")
        return begun[-1].plan_id

    yield start_plan
    for started in begun:
        await terminated(temporal_client, started.workflow_id)


@pytest.fixture
def start(worker: Worker, start_unserved: Start) -> Start:
    """Start a plan of these steps, with a worker."""
    return start_unserved


@pytest.fixture
def open_screen(temporal_client: Client, settings: Settings, start: Start) -> Open:
    """Open the screen of a plan."""

    @asynccontextmanager
    async def open_plan(*steps: dict[str, Any], size: tuple[int, int] = (80, 24), **plan: Any) -> AsyncIterator[Screen]:
        async with screen_of(temporal_client, settings, await start(*steps, **plan), size) as screen:
            yield screen

    return open_plan
