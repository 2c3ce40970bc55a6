"""The ways every plan here is run: as it comes, and with a history so short that it continues as new all the time.

PLANS_TEST_MODES names the modes to run, comma separated: plain, short, uncached. Uncached workers replay a plan from
its history at every turn; by default only the tests marked for it run so.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.client import Client
from temporalio.worker import Worker

from activities.tools.registry import load_tools
from runtime.settings import Settings
from tests.driving import Plans
from worker import CACHED_WORKFLOWS, build

TOOLS = str(Path(__file__).parent.parent / "ledger_tools.py")


@dataclass(frozen=True)
class Mode:
    """One way to run plans."""

    name: str
    history_limit: int | None = None
    cached: int = CACHED_WORKFLOWS


MODES = {mode.name: mode for mode in (Mode("plain"), Mode("short", history_limit=10), Mode("uncached", cached=0))}


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark known."""
    config.addinivalue_line("markers", "modes(*names): run the test in these modes")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run every test in its modes: those it is marked with, else plain and short."""
    if "mode" not in metafunc.fixturenames:
        return
    marker = metafunc.definition.get_closest_marker("modes")
    wanted = list(marker.args) if marker else ["plain", "short"]
    chosen = os.environ.get("PLANS_TEST_MODES")
    names = [name for name in chosen.split(",") if name in MODES] if chosen and not marker else wanted
    metafunc.parametrize("mode", [MODES[name] for name in names], ids=names)


MakeWorker = Callable[..., Worker]


@pytest.fixture
def make_worker(temporal_client: Client, settings: Settings, mode: Mode) -> MakeWorker:
    """Makes a worker with the built-in tools and the ledger's, on the test's queue; give it other settings."""

    def make(indexed: bool = True, client: Client = temporal_client, **changed: object) -> Worker:
        changed_settings = settings.with_flags(**changed)
        return build(client, changed_settings, load_tools([TOOLS]), indexed=indexed, cached=mode.cached)

    return make


@pytest_asyncio.fixture
async def worker(make_worker: MakeWorker) -> AsyncIterator[Worker]:
    """Such a worker, running."""
    async with make_worker() as running:
        yield running


@pytest.fixture
def idle(temporal_client: Client, queue: str, workspace: Path, mode: Mode) -> Plans:
    """Plans that nobody works on yet."""
    options = {"historyLimit": mode.history_limit} if mode.history_limit else {}
    return Plans(temporal_client, queue, workspace, options)


@pytest.fixture
def plans(idle: Plans, worker: Worker) -> Plans:
    """Plans that a worker works on."""
    return idle
