"""A server of its own for plans that are encrypted: what others leave on the shared one, nobody else could read."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from plansurvive.runtime.server import Server
from tests.kit.servers import development_server


@pytest_asyncio.fixture(scope="session")
async def server(temporal_binary: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    """Takes the place of the server that all other tests share."""
    async with development_server(temporal_binary, tmp_path_factory.mktemp("server")) as running:
        yield running
