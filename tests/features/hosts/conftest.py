"""Workers of several hosts in one process, and plans that they run."""

from __future__ import annotations

from pathlib import Path

import pytest
from temporalio.client import Client

from plansurvive.runtime.settings import Settings
from tests.features.hosts.machines import Machines
from tests.kit.driving import Plans


@pytest.fixture
def machines(temporal_client: Client, settings: Settings, tmp_path: Path) -> Machines:
    return Machines(temporal_client, settings, tmp_path)


@pytest.fixture
def plans(temporal_client: Client, queue: str, tmp_path: Path) -> Plans:
    return Plans(temporal_client, queue, tmp_path)
