"""Ann at the page without JavaScript: forms and links over ASGI, and plans on a real server, as fixtures."""

from __future__ import annotations

import html
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from temporalio.client import Client
from temporalio.worker import Worker

from plansurvive.activities.tools.registry import load_tools
from plansurvive.apps.web.common.service import Service
from plansurvive.client import runs
from plansurvive.plans.run import Options
from plansurvive.runtime.connect import Connection, Origin
from plansurvive.runtime.server import Server
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.task_queues import listeners
from plansurvive.worker import build
from tests.apps.web.page_client import access_of, browsing, csrf_of
from tests.kit.driving import Started, terminated
from tests.kit.waiting import until

WRITE = {"id": "write", "tool": "write_file", "args": {"path": "a.txt", "content": "one"}, "description": "Write it"}
READ = {"id": "read", "tool": "read_file", "args": {"path": "a.txt"}, "dependsOn": ["write"]}
LIST = {"id": "list", "tool": "list_directory", "args": {}}

Start = Callable[..., Awaitable[str]]


@dataclass
class Visitor:
    """Ann at the page, without JavaScript."""

    service: Service
    browser: httpx.AsyncClient
    client: Client

    async def get(self, path: str, status: int = 200) -> str:
        """A page as text, with its characters as a person sees them."""
        answer = await self.browser.get(path)
        assert answer.status_code == status, answer.text
        return html.unescape(answer.text)

    async def post(self, url: str, fields: dict[str, Any], status: int = 303) -> str:
        """Send a form; the page that follows a redirect, or the answer itself."""
        answer = await self.send(url, fields)
        assert answer.status_code == status, answer.text
        return await self.get(answer.headers["location"]) if status == 303 else html.unescape(answer.text)

    async def send(self, path: str, fields: dict[str, Any]) -> httpx.Response:
        """Send a form with the token of the session."""
        return await self.browser.post(path, data={**fields, "csrf": csrf_of(self.browser, self.service)})

    async def view(self, plan: str) -> runs.PlanView:
        """The plan as it is."""
        return await runs.show(self.client, plan)

    async def in_review(self, plan: str) -> runs.PlanView:
        """The plan once its worker has checked it: before, it has neither inputs nor defaults."""
        found: runs.PlanView = await until(partial(self._seen, plan, "review"), f"{plan} is in review")
        return found

    async def _seen(self, plan: str, status: str) -> runs.PlanView | None:
        view = await self.view(plan)
        return view if view.status == status else None

    async def ids(self, plan: str) -> list[str]:
        """The plan's steps in order."""
        return [step.id for step in (await self.view(plan)).steps]

    async def saw(self, plan: str) -> int:
        """Look at the review of a plan; the version that it shows."""
        found = re.search(r'name="version" value="(\d+)"', await self.get(f"/plans/{plan}/draft"))
        assert found is not None
        return int(found[1])


def at(plan: str, step: str) -> str:
    """The address of a step's form."""
    return f"/plans/{plan}/draft/steps/{quote(step, safe='')}"


def service_on(server: Server, settings: Settings, client: Client) -> Service:
    """A page's service on this machine's server."""
    return Service(settings, {}, access_of(), Connection(client, server.address, Origin.CONFIGURED))


@asynccontextmanager
async def working(client: Client, settings: Settings) -> AsyncIterator[None]:
    """A worker with these settings, once the server knows of it: the page must not start one of its own."""
    async with build(client, settings, load_tools(()), indexed=True):
        await until(lambda: listeners(client, settings.task_queue), "the server sees the worker poll")
        yield


@pytest.fixture
async def visitor(server: Server, settings: Settings, temporal_client: Client) -> AsyncIterator[Visitor]:
    """Ann, who has opened the link."""
    service = service_on(server, settings, temporal_client)
    async with browsing(service) as browser:
        yield Visitor(service, browser, temporal_client)


@pytest.fixture
async def start_unserved(temporal_client: Client, queue: str, workspace: Path) -> AsyncIterator[Start]:
    """Start a plan of these steps, in review unless said otherwise; terminated at the end. The test brings a worker."""
    begun: list[runs.Started] = []

    async def start_plan(*steps: dict[str, Any], review: bool = True, **plan: Any) -> str:
        options = Options(workspace=str(workspace), review=review)
        given = {"title": "Notes", **plan, "steps": list(steps or (WRITE, READ, LIST))}
        begun.append(await runs.start(temporal_client, given, options=options, queue=queue))
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
