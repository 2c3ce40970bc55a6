"""A worker whose quotas.toml gives each customer one plan at a time, and the killable one of the chaos tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.client import Client

from plansurvive.activities.tools.registry import load_tools
from plansurvive.runtime.settings import Settings
from plansurvive.worker import build
from tests.chaos.conftest import chaos, chaos_server, chaos_worker
from tests.kit import LEDGER_TOOLS
from tests.kit.driving import Plans

__all__ = ["chaos", "chaos_server", "chaos_worker"]


@pytest.fixture
def quotas(settings: Settings, queue: str) -> str:
    """The label that the tests limit: of one plan at a time, `more` of it of two. Other tests have other values."""
    settings.state_dir.mkdir(parents=True, exist_ok=True)
    name = f"q{queue}".replace(":", ".")[:60]
    (settings.state_dir / "quotas.toml").write_text(f'[labels]\n"{name}" = 1\n"{name}=more" = 2\n')
    return name


@pytest_asyncio.fixture(loop_scope="session")
async def plans(
    temporal_client: Client, settings: Settings, queue: str, workspace: Path, quotas: str
) -> AsyncIterator[Plans]:
    """Plans on a worker with the quotas."""
    assert quotas
    async with build(temporal_client, settings, load_tools([LEDGER_TOOLS]), indexed=True):
        yield Plans(temporal_client, queue, workspace)


@pytest.fixture
def idle(temporal_client: Client, queue: str, workspace: Path) -> Plans:
    """Plans without a worker."""
    return Plans(temporal_client, queue, workspace)
