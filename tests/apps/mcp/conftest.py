"""Our MCP server as tests use it: a host with the session's Temporal server and a queue and workspace of the test."""

from __future__ import annotations

from pathlib import Path

import pytest
from temporalio.client import Client

from plansurvive.apps.mcp.common.host import Host
from plansurvive.runtime.connect import Connection, Origin
from plansurvive.runtime.server import Server
from plansurvive.runtime.settings import Settings


@pytest.fixture
def host(server: Server, temporal_client: Client, queue: str, state_dir: Path, workspace: Path) -> Host:
    """A server of this test's queue and workspace."""
    environ = {
        "PLANS_STATE_DIR": str(state_dir), "PLANS_WORKSPACE": str(workspace), "PLANS_TASK_QUEUE": queue,
        "PLANS_AUTO_WORKER": "off", "TEMPORAL_ADDRESS": server.address,
    }  # fmt: skip

    async def connecting() -> Connection:
        return Connection(temporal_client, server.address, Origin.CONFIGURED)

    return Host(Settings.read(environ), environ, "ann", connecting=connecting)
