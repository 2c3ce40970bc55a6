"""What tests of background processes share: an embedded server of their own."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from plansurvive.runtime import server
from plansurvive.runtime.background_worker import stop_workers
from plansurvive.runtime.server import Server
from plansurvive.runtime.settings import Settings


@pytest_asyncio.fixture
async def embedded(state_dir: Path, temporal_binary: Path, caches: dict[str, str]) -> AsyncIterator[Settings]:
    """Settings that lead to an embedded server; it and its workers are stopped at the end."""
    own = {"PLANS_STATE_DIR": str(state_dir), "PLANS_SERVER": "embedded", "TEMPORAL_CONFIG_FILE": os.devnull}
    settings = Settings.read({**caches, **own})
    # Ports of its own, as if it had run before: 7233 may be another test's.
    port, ui_port = server.free_ports(0, 0)
    before = Server(pid=0, began="", address=f"{server.HOST}:{port}", ui=f"http://{server.HOST}:{ui_port}")
    before.write(server.record(settings))
    yield settings
    await stop_workers(settings.with_flags(grace=0))
    running = server.recorded(settings)
    if running is not None:
        await running.stop(grace=0)  # a kind end takes seconds, and nothing of it is kept
    await server.stop(settings)
