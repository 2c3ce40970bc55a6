"""docker-compose.yml in a Docker engine, brought up once for all of these tests; `make test-compose`.

At the end the tests list what stood in for images that could not be pulled, and what they measured.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.compose.engine import Engine, engine, missing
from tests.compose.host_audit import Audit
from tests.compose.stack import BUILT, Stack, prepared

ORDER = ("registry", "services", "examples_in_containers", "container_kills", "worker_upgrade", "backup", "host_audit")
"""The audit is about all that went before it."""
_SUMMARY: list[str] = []
"""What is printed at the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests in their order, within a file as they are written."""
    items.sort(key=lambda item: next((ORDER.index(name) for name in ORDER if item.path.stem == f"test_{name}"), -1))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the stand-ins and the figures."""
    if _SUMMARY:
        terminalreporter.section("docker-compose.yml in a Docker engine")
        for row in _SUMMARY:
            terminalreporter.write_line(row)


@pytest.fixture(scope="session")
def figures() -> list[str]:
    """Rows that are printed at the end."""
    return _SUMMARY


@pytest.fixture(scope="session")
def docker() -> Iterator[Engine]:
    """The engine."""
    wanted = missing()
    if wanted:
        pytest.exit("make test-compose needs: " + "; ".join(wanted) + ".", returncode=1)
    with engine() as running:
        yield running


@pytest.fixture(scope="session")
def built(docker: Engine, figures: list[str]) -> Iterator[Stack]:
    """The stack with all its images, before it is brought up for the first time."""
    folder = Path(tempfile.mkdtemp(prefix="plans-compose-"))
    folder.chmod(0o755)
    try:
        stack = prepared(docker, folder)
        version = docker.run("version", "--format", "{{.Server.Version}}").strip()
        figures.append(f"Docker Engine {version}, {docker.run('compose', 'version').strip()}")
        figures += [f"stand-in for {image}: {each.differs}" for image, each in sorted(stack.stand_ins.items())]
        if not stack.stand_ins:
            figures.append("no stand-ins: every image was pulled")
        began = time.monotonic()
        stack.compose("build", *BUILT)
        figures.append(f"images built in {time.monotonic() - began:.0f} s")
        yield stack
    finally:
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def audit(built: Stack) -> Audit:
    """The host as it was before the stack was brought up."""
    return Audit.begin(built)


@pytest_asyncio.fixture(scope="session")
async def stack(built: Stack, audit: Audit, figures: list[str]) -> AsyncIterator[Stack]:
    """The stack, healthy."""
    try:
        began = time.monotonic()
        built.compose("up", "--detach", "--no-build")
        await built.until_healthy()
        figures.append(f"all services healthy {time.monotonic() - began:.0f} s after `docker compose up`, from nothing")
        yield built
    finally:
        for service in built.unhealthy():
            print(f"--- {service}\n{built.compose('logs', '--no-color', '--tail', '40', service)}")
        built.compose("down", "--volumes", "--timeout", "20")
