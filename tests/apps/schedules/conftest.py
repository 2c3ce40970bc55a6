"""Schedules on the real server, served by a worker of ours."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
from temporalio.client import Client
from temporalio.worker import Worker

from tests.apps.schedules.driving import Schedules


@pytest_asyncio.fixture
async def schedules(temporal_client: Client, worker: Worker, queue: str, workspace: Path) -> AsyncIterator[Schedules]:
    """Schedules whose runs a worker serves; deleted at the end."""
    found = Schedules(temporal_client, queue, workspace)
    yield found
    await found.clear()
