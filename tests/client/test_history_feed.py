"""Watching through a server that dies: nothing is missed, and the watcher is told."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
from temporalio.client import Client

from plansurvive.activities.tools.registry import load_tools
from plansurvive.client import runs
from plansurvive.client.runs import Choice
from plansurvive.plans.run import Options
from plansurvive.runtime import daemon
from plansurvive.runtime.errors import NotConnected
from plansurvive.runtime.server import HOST, Server, flags, free_ports
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.storage import LocalDirectory, converter
from plansurvive.worker import build
from tests.kit.waiting import connected, until

STEPS = [
    {"id": "write", "tool": "write_file", "args": {"path": "a.txt", "content": "hello"}},
    {"id": "remove", "tool": "delete_file", "args": {"path": "a.txt"}, "dependsOn": ["write"]},
]


class Mortal:
    """A server with its data on disk, which a test may kill and start again at the same address."""

    def __init__(self, binary: Path, directory: Path) -> None:
        self._binary, self._directory = binary, directory
        self._ports = free_ports(0, 0)
        self._running: Server | None = None

    @property
    def address(self) -> str:
        """Where it listens whenever it runs."""
        return f"{HOST}:{self._ports[0]}"

    async def start(self) -> None:
        """Start it, and wait until it listens."""
        port, ui_port = self._ports
        command = [str(self._binary), *flags(port, ui_port, self._directory / "temporal.db")]
        pid, began = daemon.start(command, self._directory / "server.log", os.environ)
        self._running = Server(pid=pid, began=began, address=self.address, ui="")
        await until(self._running.accepts, "the server listens", patience=60)

    async def kill(self) -> None:
        """End it at once."""
        if self._running is not None:
            os.kill(self._running.pid, signal.SIGKILL)
            await self._running.stop(grace=0)
            self._running = None


@pytest.fixture
async def mortal(temporal_binary: Path, tmp_path: Path) -> AsyncIterator[Mortal]:
    """A running server that may be killed."""
    server = Mortal(temporal_binary, tmp_path)
    await server.start()
    yield server
    await server.kill()


@pytest.mark.slow
async def test_a_watcher_misses_nothing_when_the_server_dies_and_comes_back(
    mortal: Mortal, settings: Settings, workspace: Path, tmp_path: Path, queue: str
) -> None:
    client = await connected(mortal.address, data_converter=converter(LocalDirectory(tmp_path / "values")))
    said: list[str] = []

    async def watched(plan: str) -> list[str]:
        return [f"{event.step_id} {event.status}" async for event in runs.watch(client, plan, say=said.append)]

    async with build(client, settings, load_tools(()), indexed=False):
        options = Options(workspace=str(workspace))
        plan = (await runs.start(client, {"steps": STEPS}, options=options, queue=queue)).plan_id
        watcher = asyncio.create_task(watched(plan))
        await until(lambda: _asks(client, plan), "the step asks")
        await mortal.kill()
        await until(lambda: said, "the watcher is told")
        await mortal.start()
        await until(lambda: _asks(client, plan), "the plan answers again", patience=60)
        await runs.approve(client, plan, Choice(step_id="remove"))
        seen = await watcher
        assert [row for row in seen if row.startswith("remove")][-2:] == ["remove running", "remove completed"]
        assert seen == [f"{event.step_id} {event.status}" async for event in runs.watch(client, plan)]


async def _asks(client: Client, plan: str) -> bool:
    with suppress(NotConnected):
        return bool((await runs.show(client, plan)).pending)
    return False
