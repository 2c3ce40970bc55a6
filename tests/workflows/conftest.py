"""Modes in which workflow tests run: `plain`; `short`, continue-as-new after ten events; `uncached`, always replaying.

An uncached worker replays the history at every workflow task. By default a test runs in `plain`, or in `short` if it is
marked `crosses_runs`, because some state must survive continue-as-new. The nightly run (--nightly) uses all modes, and
.ci/run (--sample) does for tests marked `every_mode`. The mark `modes` restricts a test to the modes it can run in.
PLANS_TEST_MODES selects modes, comma-separated.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.client import Client
from temporalio.worker import Worker

from plansurvive.activities.tools.registry import load_tools
from plansurvive.runtime.settings import Settings
from plansurvive.worker import CACHED_WORKFLOWS, build
from tests.driving import Plans

TOOLS = str(Path(__file__).parent.parent / "ledger_tools.py")


@dataclass(frozen=True)
class Mode:
    """One way to run plans."""

    name: str
    history_limit: int | None = None
    cached: int = CACHED_WORKFLOWS


MODES = {mode.name: mode for mode in (Mode("plain"), Mode("short", history_limit=10), Mode("uncached", cached=0))}


def pytest_configure(config: pytest.Config) -> None:
    """Register the marks."""
    config.addinivalue_line("markers", "modes(*names): the only modes that the test can run in")
    config.addinivalue_line("markers", "crosses_runs: with a short history in the default run")
    config.addinivalue_line("markers", "every_mode: in all modes in .ci/run (--sample), not in the nightly run only")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize every test with its modes."""
    if "mode" not in metafunc.fixturenames:
        return
    marker = metafunc.definition.get_closest_marker("modes")
    crosses_runs = metafunc.definition.get_closest_marker("crosses_runs") is not None
    chosen = os.environ.get("PLANS_TEST_MODES")
    names = modes(
        tuple(marker.args) if marker else tuple(MODES),
        crosses_runs,
        chosen.split(",") if chosen else list(MODES) if _in_all_modes(metafunc) else None,
    )
    metafunc.parametrize("mode", [MODES[name] for name in names], ids=names)


def _in_all_modes(metafunc: pytest.Metafunc) -> bool:
    is_marked = metafunc.definition.get_closest_marker("every_mode") is not None
    return bool(metafunc.config.getoption("nightly") or (is_marked and metafunc.config.getoption("sample")))


def modes(possible: Sequence[str], crosses_runs: bool, chosen: Sequence[str] | None) -> list[str]:
    """The modes a test runs in. `possible`: those it supports; `chosen`: those selected for this test run, if any."""
    wanted = chosen or (["short"] if crosses_runs else ["plain"])
    return [name for name in possible if name in wanted] or list(possible[:1])


MakeWorker = Callable[..., Worker]


@pytest.fixture
def make_worker(temporal_client: Client, settings: Settings, mode: Mode) -> MakeWorker:
    """Creates a worker with the built-in and ledger tools on the test's queue; keyword arguments change settings."""

    def make(indexed: bool = True, client: Client = temporal_client, **changed: object) -> Worker:
        changed_settings = settings.with_flags(**changed)
        return build(client, changed_settings, load_tools([TOOLS]), indexed=indexed, cached=mode.cached)

    return make


@pytest_asyncio.fixture
async def worker(make_worker: MakeWorker) -> AsyncIterator[Worker]:
    """A running worker with default settings."""
    async with make_worker() as running:
        yield running


@pytest.fixture
def idle(temporal_client: Client, queue: str, workspace: Path, mode: Mode) -> Plans:
    """Plans without a running worker."""
    options = {"historyLimit": mode.history_limit} if mode.history_limit else {}
    return Plans(temporal_client, queue, workspace, options)


@pytest.fixture
def plans(idle: Plans, worker: Worker) -> Plans:
    """Plans with a running worker."""
    return idle
