"""A worker and commands with the same storage, as on one machine."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio
from temporalio.worker import Worker

from plansurvive.activities.tools.registry import load_tools
from plansurvive.runtime.connect import storage
from plansurvive.runtime.server import Server
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.storage import converter
from plansurvive.runtime.task_queues import listeners
from plansurvive.worker import build
from tests.kit.waiting import connected, until


@pytest_asyncio.fixture
async def worker(server: Server, settings: Settings) -> AsyncIterator[Worker]:
    """A worker that polls the test's queue and stores what is large in the state directory."""
    client = await connected(server.address, data_converter=converter(storage(settings)))
    async with build(client, settings, load_tools(()), indexed=True) as running:
        await until(lambda: listeners(client, settings.task_queue), "the server sees the worker poll")
        yield running
