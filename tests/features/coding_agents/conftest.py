"""What the tests of coding agents share."""

from __future__ import annotations

from pathlib import Path

import pytest
from temporalio.client import Client

from plansurvive.runtime.settings import Settings
from tests.features.coding_agents.scene import Scene
from tests.kit.driving import Plans


@pytest.fixture
def idle(temporal_client: Client, queue: str, workspace: Path) -> Plans:
    """Plans without a running worker."""
    return Plans(temporal_client, queue, workspace, {})


@pytest.fixture
def scene(temporal_client: Client, settings: Settings, tmp_path: Path) -> Scene:
    """A scripted agent, and where its worker runs."""
    place = tmp_path / "agent"
    place.mkdir()
    return Scene(temporal_client, settings, place)
