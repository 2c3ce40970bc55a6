"""A server with its data on disk and workers, all processes of their own: to be killed and started again.

PLANS_CHAOS_KILLS raises the number of kills per test (3 by default); the moments are drawn from PLANS_CHAOS_SEED.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.contrib.pydantic import pydantic_data_converter

from plansurvive.runtime.server import HOST, flags, free_ports, listens
from tests.kit import LEDGER_TOOLS
from tests.kit.driving import Plans
from tests.kit.waiting import connected, until

ROOT = Path(__file__).parent.parent.parent
KILLS = int(os.environ.get("PLANS_CHAOS_KILLS", "3"))


@dataclass
class Killable:
    """A process that can be started, killed and started again."""

    command: list[str]
    environ: dict[str, str]
    log: Path
    running: subprocess.Popen[bytes] | None = None
    starts: int = 0

    def start(self) -> None:
        """Start it; it must not be running."""
        assert self.running is None
        with self.log.open("ab") as log:
            self.running = subprocess.Popen(
                self.command, env=self.environ, cwd=ROOT, stdout=log, stderr=log, start_new_session=True
            )
        self.starts += 1

    def kill(self) -> None:
        """kill -9, and it is gone."""
        if self.running is not None:
            self.running.kill()
            self.running.wait()
            self.running = None

    async def died(self) -> None:
        """Wait until it has been killed, by itself or another."""
        process = self.running
        assert process is not None
        await until(lambda: process.poll() is not None, "the process has died")
        assert process.returncode == -signal.SIGKILL
        self.running = None

    async def stop(self) -> int:
        """SIGTERM; the exit code."""
        process = self.running
        assert process is not None
        process.send_signal(signal.SIGTERM)
        await until(lambda: process.poll() is not None, "the process has ended")
        self.running = None
        return int(process.returncode)


@dataclass
class ServerProcess(Killable):
    """A Temporal server."""

    port: int = 0

    async def up(self) -> None:
        """Start it and wait until it listens."""
        self.start()
        await until(lambda: listens(HOST, self.port), "the server listens")


@dataclass
class WorkerProcess(Killable):
    """A worker of ours."""

    async def up(self) -> None:
        """Start it and wait until it says that it listens."""
        self.start()
        await until(lambda: self.log.read_text().count("Listening to") == self.starts, "the worker listens")


@dataclass
class Chaos:
    """What a test may kill, the plans that must survive it, and chance, with a seed that is told."""

    server: ServerProcess
    worker: WorkerProcess
    plans: Plans
    chance: random.Random
    seed: str = field(default="")


@pytest_asyncio.fixture(loop_scope="session")
async def chaos_server(temporal_binary: Path, tmp_path: Path) -> AsyncIterator[ServerProcess]:
    """A server that keeps its data in a file."""
    port, ui_port = free_ports(0, 0)
    command = [str(temporal_binary), *flags(port, ui_port, tmp_path / "temporal.db")]
    server = ServerProcess(command, dict(os.environ), tmp_path / "server.log", port=port)
    try:
        await server.up()
        yield server
    finally:
        server.kill()


@pytest.fixture
def chaos_worker(chaos_server: ServerProcess, environ: dict[str, str], tmp_path: Path) -> Iterator[WorkerProcess]:
    """A worker for that server, not yet started."""
    given = {
        "TEMPORAL_ADDRESS": f"{HOST}:{chaos_server.port}",
        "PLANS_TOOLS": LEDGER_TOOLS,
    }
    worker = WorkerProcess([sys.executable, "worker.py"], environ | given, tmp_path / "worker.log")
    yield worker
    worker.kill()


@pytest_asyncio.fixture(loop_scope="session")
async def chaos(chaos_server: ServerProcess, chaos_worker: WorkerProcess, queue: str, workspace: Path) -> Chaos:
    """All of it."""
    seed = os.environ.get("PLANS_CHAOS_SEED") or str(random.randrange(10**6))
    print(f"PLANS_CHAOS_SEED={seed}")
    client = await connected(f"{HOST}:{chaos_server.port}", data_converter=pydantic_data_converter)
    plans = Plans(client, queue, workspace, ceiling=timedelta(seconds=240 + 60 * KILLS))
    return Chaos(chaos_server, chaos_worker, plans, random.Random(seed), seed)
