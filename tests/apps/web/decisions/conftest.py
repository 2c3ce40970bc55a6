"""Plans that ask, for the pages on which people decide."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from temporalio.client import Client
from temporalio.worker import Worker

from plansurvive.apps.web.common.service import Service
from plansurvive.client import runs
from plansurvive.client.listing import list_plans
from plansurvive.plans.run import Options
from plansurvive.runtime.connect import Connection, Origin
from plansurvive.runtime.settings import Settings
from tests.apps.web.browser import chromium as chromium
from tests.apps.web.page_client import browsing, service_for
from tests.kit.driving import terminated
from tests.kit.waiting import until

Ask = Callable[..., Awaitable[str]]


@pytest.fixture
def service(settings: Settings, temporal_client: Client) -> Service:
    """The service of a page that `ann` serves, on the machine of server and worker."""
    connection = Connection(temporal_client, "127.0.0.1:7233", Origin.CONFIGURED)
    return replace(service_for(settings, None), connection=connection)


@pytest_asyncio.fixture
async def ann(service: Service) -> AsyncIterator[httpx.AsyncClient]:
    """Her browser."""
    async with browsing(service) as browser:
        yield browser


@pytest_asyncio.fixture
async def ask(temporal_client: Client, queue: str, workspace: Path, worker: Worker) -> AsyncIterator[Ask]:
    """Start a plan and wait until it asks for its first step, and the server's index knows. Returns its id.

    `waits`: what the index calls the step; items of a loop it calls `each[*]`."""
    begun: list[str] = []

    async def start(*steps: dict[str, Any], title: str = "Ask somebody", waits: str = "", **more: Any) -> str:
        plan = {"title": title, "steps": list(steps), **more}
        options = Options(workspace=str(workspace), by="bob")
        started = await runs.start(temporal_client, plan, options=options, queue=queue)
        begun.append(started.workflow_id)
        wanted = waits or str(steps[0]["id"])

        async def asks() -> bool:
            listed = [each async for each in list_plans(temporal_client) if each.plan_id == started.plan_id]
            assert all(each.is_open for each in listed), await runs.text(temporal_client, started.plan_id)
            return any(wanted in (each.waiting or ()) for each in listed)

        await until(asks, f"the server knows that {wanted} asks")
        return started.plan_id

    yield start
    for name in begun:
        await terminated(temporal_client, name)
