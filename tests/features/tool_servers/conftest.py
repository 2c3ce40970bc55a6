"""What the tests of tool servers share."""

from __future__ import annotations

from pathlib import Path

import pytest
from temporalio.client import Client

from tests.features.tool_servers.serving import Serving
from tests.kit.driving import Plans


@pytest.fixture
def serving(tmp_path: Path) -> Serving:
    """A place for servers, with an empty workspace."""
    for name in ("workspace", "state"):
        (tmp_path / name).mkdir()
    return Serving(tmp_path)


@pytest.fixture
def idle(temporal_client: Client, queue: str, workspace: Path) -> Plans:
    """Plans without a running worker."""
    return Plans(temporal_client, queue, workspace, {})
