"""A worker with tools that keep a ledger, on a client as commands connect it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
from temporalio.client import Client

from plansurvive.activities.tools.registry import load_tools
from plansurvive.runtime.connect import connect
from plansurvive.runtime.settings import Settings
from plansurvive.worker import build
from tests.kit import LEDGER_TOOLS
from tests.kit.driving import Plans


@pytest_asyncio.fixture
async def client(settings: Settings) -> Client:
    return await connect(settings)


@pytest_asyncio.fixture
async def plans(client: Client, settings: Settings, workspace: Path) -> AsyncIterator[Plans]:
    async with build(client, settings, load_tools([LEDGER_TOOLS]), indexed=True):
        yield Plans(client, settings.task_queue, workspace)
