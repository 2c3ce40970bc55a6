"""The health check of containers, and the one that says whether a restart could mend anything."""

from __future__ import annotations

import pytest
from temporalio.worker import Worker

from plansurvive.runtime.errors import NotConnected
from plansurvive.runtime.health import trouble
from plansurvive.runtime.server import free_ports
from plansurvive.runtime.settings import Settings


async def test_a_worker_that_polls_is_well(worker: Worker, settings: Settings) -> None:
    assert await trouble(settings) is None
    assert await trouble(settings, alone=True) is None


async def test_a_host_whose_worker_does_not_poll_is_not_well(settings: Settings) -> None:
    for alone in (False, True):
        assert "no worker on this machine" in str(await trouble(settings, alone=alone))


async def test_without_a_server_a_restart_would_not_mend_anything(environ: dict[str, str]) -> None:
    nowhere = Settings.read(environ | {"TEMPORAL_ADDRESS": f"127.0.0.1:{free_ports(0)[0]}"})
    with pytest.raises(NotConnected):
        await trouble(nowhere)
    assert await trouble(nowhere, alone=True) is None
