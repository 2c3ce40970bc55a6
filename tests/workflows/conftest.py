"""Where and how workflow tests run: in this process or on a server; with a long, a short, or an uncached history.

| history | what it is for |
| --- | --- |
| plain | |
| short | the plan continues as new after ten events, so state must survive that |
| uncached | the worker replays the run before each workflow task |

A test runs in process (`tests.kit.in_process`), unless it is marked `on_server` because it needs what only a server
has; the nightly run (--nightly) runs each in process and on a server, with every history. By default the history is
plain, or short if the test is marked `crosses_runs`; .ci/run (--sample) takes every history for tests marked
`every_mode`. The mark `modes` restricts a test to histories. PLANS_TEST_MODES selects modes, comma-separated.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.client import Client
from temporalio.worker import Worker

from plansurvive.activities.tools.registry import load_tools
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.storage import LocalDirectory, converter
from plansurvive.worker import CACHED_WORKFLOWS, build
from tests.kit import LEDGER_TOOLS, in_process
from tests.kit.driving import CEILING, Plans
from tests.kit.waiting import patient

NOWHERE = "127.0.0.1:1"
"""An address at which nothing listens."""


@dataclass(frozen=True)
class Mode:
    """One way to run plans."""

    history: str
    on_server: bool
    history_limit: int | None = None
    cached: int = CACHED_WORKFLOWS
    times: int = 1
    """How much longer than in the others a test waits for a condition, and a plan may take."""

    @property
    def name(self) -> str:
        """As in the ids of tests and in PLANS_TEST_MODES."""
        return f"{self.history}_on_server" if self.on_server else self.history


MODES = [
    mode
    for on_server in (False, True)
    for mode in (
        Mode("plain", on_server),
        Mode("short", on_server, history_limit=10),
        Mode("uncached", on_server, cached=0, times=3),
    )
]


def pytest_configure(config: pytest.Config) -> None:
    """Register the marks."""
    config.addinivalue_line("markers", "modes(*histories): the only histories that the test can run with")
    config.addinivalue_line("markers", "on_server(why): not in process, because it needs what only a server has")
    config.addinivalue_line("markers", "crosses_runs: with a short history in the default run")
    config.addinivalue_line("markers", "every_mode: with all histories in .ci/run (--sample), not at night only")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize every test with its modes."""
    if "mode" in metafunc.fixturenames:
        found = modes(metafunc.definition, metafunc.config, os.environ.get("PLANS_TEST_MODES"))
        metafunc.parametrize("mode", found, ids=[mode.name for mode in found])


def modes(test: pytest.Item, config: pytest.Config, chosen: str | None) -> list[Mode]:
    """The modes a test runs in. `chosen`: names of those selected for this run, if any."""

    def has(mark: str) -> bool:
        return test.get_closest_marker(mark) is not None

    restricted, is_nightly = test.get_closest_marker("modes"), config.getoption("nightly")
    needs_server = has("on_server") or config.getoption("oldest_server")
    possible = [
        mode
        for mode in MODES
        if (mode.on_server or not needs_server) and (restricted is None or mode.history in restricted.args)
    ]
    if chosen:
        return [mode for mode in possible if mode.name in chosen.split(",")]
    if is_nightly:
        return possible
    here = [mode for mode in possible if mode.on_server == needs_server]
    if has("every_mode") and config.getoption("sample"):
        return here
    wanted = "short" if has("crosses_runs") else "plain"
    return [mode for mode in here if mode.history == wanted] or here[:1]


MakeWorker = Callable[..., Worker]


@pytest.fixture(autouse=True)
def _patience(request: pytest.FixtureRequest) -> Iterator[None]:
    """Patience as the mode needs it: each workflow task of an uncached run replays all before it."""
    with patient(request.getfixturevalue("mode").times if "mode" in request.fixturenames else 1):
        yield


@pytest.fixture
def temporal_client(mode: Mode, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Client]:
    """A client of the real server, or of one in this process that is the test's own."""
    if mode.on_server:
        yield request.getfixturevalue("server_client")
        return
    values = tmp_path / "values"
    values.mkdir()
    server = in_process.Server()
    yield server.client(converter(LocalDirectory(values)))
    server.stop()


@pytest.fixture
def address(mode: Mode, request: pytest.FixtureRequest) -> str:
    """Of the real server, or of none."""
    return str(request.getfixturevalue("server").address) if mode.on_server else NOWHERE


@pytest.fixture
def make_worker(temporal_client: Client, settings: Settings, mode: Mode) -> MakeWorker:
    """Creates a worker with the built-in and ledger tools on the test's queue; keyword arguments change settings."""

    def make(indexed: bool = True, client: Client = temporal_client, **changed: object) -> Worker:
        changed_settings = settings.with_flags(**changed)
        return build(client, changed_settings, load_tools([LEDGER_TOOLS]), indexed=indexed, cached=mode.cached)

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
    return Plans(temporal_client, queue, workspace, options, CEILING * mode.times)


@pytest.fixture
def plans(idle: Plans, worker: Worker) -> Plans:
    """Plans with a running worker."""
    return idle
