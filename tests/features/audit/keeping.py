"""The records that a worker keeps of ended plans."""

from __future__ import annotations

from pathlib import Path

from temporalio.client import Client

from plansurvive.features.audit.keeper import Keeper
from plansurvive.runtime.settings import Settings
from tests.kit.driving import Started, count
from tests.kit.waiting import until


async def kept(settings: Settings, client: Client, started: Started) -> Path:
    """The file with the plan's record, once the worker's keeper has written it."""
    await until(lambda: count(client, f"WorkflowId = '{started.id}' AND ExecutionStatus != 'Running'"), "it is listed")
    await Keeper(client, settings).look()
    [path] = (settings.state_dir / "runs" / started.id.removeprefix("plan-")).glob("audit-*.jsonl")
    return path
