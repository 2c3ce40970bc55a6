"""What tests of the running system share: one real server, a fresh queue and workspace each, a worker of ours.

Everything is real and ends in order: worker, client, server. A missing `temporal` program is fetched as the project
itself would fetch it, so that no test is ever skipped for want of it.
"""

from __future__ import annotations

import gc
import os
import signal
import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import pytest_asyncio
from temporalio.client import Client
from temporalio.worker import Worker

from plansurvive.features import FEATURES
from plansurvive.runtime.server import Server
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.storage import LocalDirectory, converter
from plansurvive.runtime.temporal_binary import find_temporal
from tests.kit.lacking import pytest_make_collect_report as pytest_make_collect_report
from tests.kit.lacking import pytest_runtest_makereport as pytest_runtest_makereport
from tests.kit.servers import development_server, oldest_program
from tests.kit.waiting import connected, until
from tests.nightly import TURN, on_turn

CACHED = ("HOME", "XDG_CACHE_HOME", "PLANS_CACHE_DIR")
"""What says where programs are kept that were fetched before."""


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts what runs in its background with Ctrl-C ignored, and so would be every command tested.
    signal.signal(signal.SIGINT, signal.default_int_handler)


gc.disable()  # until the tests are collected: they and all modules stay, and rescanning them takes a third of the time


os.environ.pop("NO_COLOR", None)  # pictures of the screen are in colour

_ANY_MACHINE: dict[str, Any] = {"deadline": None, "suppress_health_check": [hypothesis.HealthCheck.too_slow]}
hypothesis.settings.register_profile("default examples", max_examples=25, **_ANY_MACHINE)
hypothesis.settings.register_profile("nightly", max_examples=100, **_ANY_MACHINE)


def pytest_addoption(parser: pytest.Parser) -> None:
    """`make test-all` runs with `--nightly`, `.ci/run` with `--sample`."""
    parser.addoption(
        "--sample",
        action="store_true",
        help="run the tests marked sampled as well, and those marked every_mode in every mode of the workflow tests",
    )
    parser.addoption(
        "--nightly",
        action="store_true",
        help="run everything: tests marked slow, every mode of the workflow tests, four times the examples",
    )
    parser.addoption(
        "--oldest-server",
        action="store_true",
        help="run on the oldest development server that is supported; choose with -m oldest_server",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make the marks known, and choose how many examples hypothesis tries."""
    config.addinivalue_line("markers", "slow: left to the nightly run (--nightly), or asked for with -m slow")
    config.addinivalue_line("markers", "sampled: run for every change (--sample) though slow; CONTRIBUTING says which")
    config.addinivalue_line("markers", "in_turn: as sampled, but every second day (tests/nightly.py)")
    config.addinivalue_line("markers", "oldest_server: run at night on the oldest server that is supported as well")
    config.addinivalue_line(
        "markers", "uses(*features): not of the core; left out where one of them is (tests/without.py)"
    )
    hypothesis.settings.load_profile("nightly" if config.getoption("nightly") else "default examples")


def pytest_report_header(config: pytest.Config) -> str | None:
    """Which part of the nightly run the sample is."""
    return f"SAMPLE_TURN={TURN}" if config.getoption("sample") else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests of features that this tree does not have (`tests.without`).

    Leave the tests marked slow to the nightly run, but for the sample; an expression with -m chooses by itself.
    """
    _leave(config, items, lambda item: not used_by(item) <= {*FEATURES})
    if config.getoption("nightly") or config.getoption("markexpr"):
        return
    takes_sample = config.getoption("sample")
    in_turn = {*on_turn(item.nodeid for item in items if item.get_closest_marker("in_turn"))}

    def is_left(item: pytest.Item) -> bool:
        is_sampled = item.get_closest_marker("sampled") is not None or item.nodeid in in_turn
        return item.get_closest_marker("slow") is not None and not (takes_sample and is_sampled)

    _leave(config, items, is_left)


def used_by(item: pytest.Item) -> set[str]:
    """The features that a test needs: of its folder below tests/features, and of its marks `uses`."""
    named = {name for mark in item.iter_markers("uses") for name in mark.args}
    features = Path(__file__).parent / "features"
    if item.path.is_relative_to(features) and item.path.parent != features:
        named.add(item.path.relative_to(features).parts[0])
    return named


def _leave(config: pytest.Config, items: list[pytest.Item], is_left: Callable[[pytest.Item], bool]) -> None:
    left = [item for item in items if is_left(item)]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if not is_left(item)]


def pytest_collection_finish() -> None:
    """From here on there is garbage to collect; what is there already is permanent."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_xdist_auto_num_workers() -> int:
    """One process more than there are cores: most tests wait for a server or a process most of the time."""
    return (os.cpu_count() or 1) + 1


@pytest.fixture(scope="session")
def caches() -> dict[str, str]:
    """The variables that lead to programs fetched before; whoever needs one and is not told fetches it again."""
    return {name: os.environ[name] for name in CACHED if name in os.environ}


@pytest_asyncio.fixture(scope="session")
async def temporal_binary(caches: dict[str, str], pytestconfig: pytest.Config) -> Path:
    """The `temporal` program."""
    if pytestconfig.getoption("oldest_server"):
        return await oldest_program()
    return await find_temporal(Settings.read(caches), print)


@pytest_asyncio.fixture(scope="session")
async def server(temporal_binary: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    """A development server with our settings and search attributes, in memory."""
    async with development_server(temporal_binary, tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest_asyncio.fixture(scope="session")
async def server_client(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Client:
    """A client of that server, with a directory for large data that its workers share."""
    shared = converter(LocalDirectory(tmp_path_factory.mktemp("values")))
    return await connected(server.address, data_converter=shared, identity="tester@tests")


@pytest.fixture
def temporal_client(server_client: Client) -> Client:
    """The client of the tests; where tests run in process, their own."""
    return server_client


@pytest.fixture
def address(server: Server) -> str:
    """Where commands and workers of this test look for a server."""
    return server.address


@pytest.fixture
def queue() -> str:
    """A task queue of the test's own."""
    return f"queue-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    """A state directory of the test's own."""
    path = tmp_path / "state"
    path.mkdir()
    return path


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """An empty workspace."""
    path = tmp_path / "workspace"
    path.mkdir()
    return path


@pytest.fixture
def environ(address: str, caches: dict[str, str], queue: str, state_dir: Path, workspace: Path) -> dict[str, str]:
    """The environment of a command or worker of this test; add to it, or pass it to a process."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "GOPATH") if name in os.environ}
    return (
        caches
        | kept
        | {
            "TEMPORAL_ADDRESS": address,
            "PLANS_TASK_QUEUE": queue,
            "PLANS_STATE_DIR": str(state_dir),
            "PLANS_WORKSPACE": str(workspace),
            "PLANS_GRACE": "5",
            "PYTHONPATH": str(Path(__file__).parent.parent),
        }
    )


@pytest.fixture
def settings(environ: dict[str, str]) -> Settings:
    """The settings of that environment."""
    return Settings.read(environ)


@pytest_asyncio.fixture
async def worker(temporal_client: Client, settings: Settings) -> AsyncIterator[Worker]:
    """A worker of ours with the built-in tools, polling the test's queue: a command must not start one of its own."""
    from plansurvive.activities.tools.registry import load_tools
    from plansurvive.runtime.task_queues import listeners
    from plansurvive.worker import build

    async with build(temporal_client, settings, load_tools(()), indexed=True) as running:
        await until(lambda: listeners(temporal_client, settings.task_queue), "the server sees the worker poll")
        yield running
