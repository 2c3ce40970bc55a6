"""The embedded server or its worker dies while a command follows a plan: the command starts it again."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from plansurvive.client.cli.follow.screen import NOTICE_SECONDS
from plansurvive.runtime import background_worker, server
from plansurvive.runtime.connect import reach
from plansurvive.runtime.settings import Settings
from tests.client.cli.command import line_with, plan, running, written
from tests.client.cli.follow.test_screen import terminal
from tests.kit.driving import GO
from tests.kit.waiting import until
from tests.nightly import only_nightly

STEPS = {
    "steps": [
        {
            "id": "slow",
            "tool": "run_command",
            "args": {"command": f"touch begun; until [ -e {GO} ]; do sleep 0.05; done"},
        },
        {"id": "after", "tool": "write_file", "args": {"path": "done.txt", "content": "x"}, "dependsOn": ["slow"]},
    ]
}


@asynccontextmanager
async def followed(embedded: Settings, workspace: Path, verb: str, name: str) -> AsyncIterator[Process]:
    """A command that follows the plan, whose first step runs."""
    file = workspace.parent / "plan.json"
    file.write_text(json.dumps(STEPS))
    environ = os.environ | embedded.as_environ()
    arguments = [str(file), "--yes", "--id", name, "--workspace", str(workspace)]
    if verb == "watch":
        assert (await plan(environ, "start", *arguments)).code == 0
        arguments = [name]
    async with running(environ, verb, *arguments) as process:
        await line_with(process, "slow")
        await until((workspace / "begun").exists, "the command runs")
        yield process


@pytest.mark.parametrize("verb", ["run", only_nightly("watch")])
async def test_a_server_that_died_is_started_by_whoever_follows(embedded: Settings, workspace: Path, verb: str) -> None:
    async with followed(embedded, workspace, verb, "gone") as process:
        first = server.recorded(embedded)
        assert first
        os.kill(first.pid, signal.SIGKILL)
        await until(lambda: not first.is_alive(), "the server is gone")
        (workspace / GO).touch()
        _, told = await process.communicate()
        assert process.returncode == 0, told.decode()
    assert (workspace / "done.txt").read_text() == "x"
    assert "ended unexpectedly; starting it again" in told.decode()
    second = server.recorded(embedded)
    assert second
    assert second.address == first.address


@pytest.mark.slow
async def test_a_server_that_was_stopped_on_purpose_is_not_started_by_whoever_follows(
    embedded: Settings, workspace: Path
) -> None:
    async with followed(embedded, workspace, "run", "kept") as process:
        await server.stop(embedded)
        assert process.stderr
        seen = ""
        while "does not answer" not in seen:
            seen += (await process.stderr.readline()).decode()
        assert "starting it again" not in seen
        assert server.recorded(embedded) is None


@pytest.mark.slow
async def test_a_board_says_that_the_server_is_away_as_long_as_it_is(embedded: Settings, workspace: Path) -> None:
    environ = os.environ | embedded.as_environ()
    asks = {"steps": [{"id": "colour", "tool": "ask", "args": {"question": "Which colour?"}}]}
    file = written(workspace.parent / "plan.json", asks)
    assert (await plan(environ, "start", file, "--id", "asks", "--workspace", str(workspace))).code == 0
    async with terminal(environ, "watch", "asks") as screen:
        await until(lambda: "Answer colour?" in screen.text, "it is asked")
        await server.stop(embedded)
        await until(lambda: "does not answer" in screen.text, "it says that the server is away")
        seen = len(screen.text)
        await asyncio.sleep(NOTICE_SECONDS + 1)
        assert "does not answer" in screen.text[seen:].rpartition("Answer colour?")[2]
        assert (await plan(environ, "show", "asks")).code == 0, "which starts the server"

        def is_over() -> bool:
            return "does not answer" not in screen.text.rpartition("Answer colour?")[2]

        await until(is_over, "the board is up to date again")


@pytest.mark.slow
async def test_a_board_that_asks_says_that_no_worker_is_there(embedded: Settings, workspace: Path) -> None:
    environ = os.environ | embedded.as_environ()
    asks = {"steps": [{"id": "colour", "tool": "ask", "args": {"question": "Which colour?"}}]}
    file = written(workspace.parent / "plan.json", asks)
    assert (await plan(environ, "start", file, "--id", "asks", "--workspace", str(workspace))).code == 0
    async with terminal(environ, "watch", "asks") as screen:
        await until(lambda: "Answer colour?" in screen.text, "it is asked")
        assert await background_worker.stop_workers(embedded)
        await until(lambda: "starts a worker: none serves the plan" in screen.text, "it says that there is none")
        assert "Answer colour?" in screen.text.rpartition("none serves the plan")[2]


@pytest.mark.parametrize("verb", ["run", only_nightly("watch")])
async def test_a_worker_that_died_is_replaced_by_whoever_follows(
    embedded: Settings, workspace: Path, verb: str
) -> None:
    async with followed(embedded, workspace, verb, "orphan") as process:
        (first,) = background_worker.recorded(embedded)
        os.kill(first.pid, signal.SIGKILL)
        (workspace / GO).touch()
        _, told = await process.communicate()
        assert process.returncode == 0, told.decode()
    assert (workspace / "done.txt").read_text() == "x"
    assert "The background worker ended unexpectedly; another one has been started." in told.decode()
    (second,) = background_worker.recorded(embedded)
    assert second.pid != first.pid


async def test_a_worker_that_was_stopped_on_purpose_is_not_replaced(embedded: Settings, workspace: Path) -> None:
    async with followed(embedded, workspace, "run", "stopped"):
        connection = await reach(embedded, print)
        assert await background_worker.stop_workers(embedded)
        assert await background_worker.ensure_worker(embedded, connection, again=True) is None
        assert background_worker.recorded(embedded) == []
