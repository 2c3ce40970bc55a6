"""A background worker that nothing needs any more ends by itself; one in the foreground stays. So does the server."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from plansurvive.runtime import server
from plansurvive.runtime.background_worker import ensure_worker
from plansurvive.runtime.connect import reach
from plansurvive.runtime.server import Server
from plansurvive.runtime.settings import Settings
from tests.kit.waiting import until
from tests.test_worker import line, start_plan, worker_process


@asynccontextmanager
async def own_server(embedded: Settings, environ: dict[str, str]) -> AsyncIterator[tuple[Server, dict[str, str]]]:
    """An embedded server, and the environment of a worker for it."""
    running = await server.ensure(embedded)
    await reach(embedded)
    yield running, environ | {"TEMPORAL_ADDRESS": running.address}


@pytest.mark.slow
async def test_server_and_background_worker_end_when_their_state_directory_is_gone(embedded: Settings) -> None:
    running = await server.ensure(embedded)
    worker = await ensure_worker(embedded, await reach(embedded))
    assert worker
    gone = embedded.state_dir.rename(embedded.state_dir.with_name("moved"))
    await until(lambda: not worker.is_alive() and not running.is_alive(), "both have ended")
    await until(lambda: not running.guard or not running.guard.is_alive(), "the proxy has ended")
    [log] = gone.glob("worker-*.log")
    assert f"The state directory {embedded.state_dir} is gone: this worker ends on its own." in log.read_text()
    assert log.read_text().splitlines()[-1] == "Stopped."


@pytest.mark.slow
async def test_another_directory_in_its_place_is_not_theirs(embedded: Settings) -> None:
    running = await server.ensure(embedded)
    worker = await ensure_worker(embedded, await reach(embedded))
    assert worker
    shutil.rmtree(embedded.state_dir)
    embedded.state_dir.mkdir()
    await until(lambda: not worker.is_alive() and not running.is_alive(), "both have ended")


@pytest.mark.slow
async def test_a_background_worker_ends_when_its_server_stays_away(embedded: Settings, environ: dict[str, str]) -> None:
    async with own_server(embedded, environ) as (_, own), worker_process(own, "--patience", "3") as process:
        await line(process)
        await server.stop(embedded)
        output, errors = await asyncio.wait_for(process.communicate(), 90)
        told = output.decode().splitlines()
        assert "The server has not answered for" in told[0]
        assert "this worker ends on its own" in told[0]
        assert process.returncode == 0, errors.decode()


@pytest.mark.slow
async def test_a_step_that_runs_does_not_keep_a_useless_worker_and_its_command_ends_with_it(
    embedded: Settings, environ: dict[str, str], workspace: Path, queue: str
) -> None:
    flags = ("--patience", "3", "--grace", "600")
    async with own_server(embedded, environ) as (_, own), worker_process(own, *flags) as process:
        await line(process)
        client = (await reach(embedded)).client
        command = f"while :; do touch alive; sleep 0.05; done # {queue}"
        await start_plan(client, queue, tool="run_command", args={"command": command})
        await until(lambda: (workspace / "alive").exists(), "the command runs")
        await server.stop(embedded)
        assert await asyncio.wait_for(process.wait(), 90) == 0
    await until(lambda: not _commands_with(queue), "the command has ended")


@pytest.mark.slow
async def test_a_worker_that_finishes_its_steps_ends_as_well_when_it_becomes_useless(
    embedded: Settings, environ: dict[str, str], workspace: Path, queue: str
) -> None:
    flags = ("--patience", "600", "--grace", "600")
    async with own_server(embedded, environ) as (_, own), worker_process(own, *flags) as process:
        await line(process)
        client = (await reach(embedded)).client
        await start_plan(client, queue, tool="run_command", args={"command": "touch begun; sleep 600"})
        await until(lambda: (workspace / "begun").exists(), "the command runs")
        process.terminate()
        assert "600 s to finish" in await line(process)
        shutil.rmtree(embedded.state_dir)
        assert "is gone: this worker ends on its own" in await line(process)
        assert await asyncio.wait_for(process.wait(), 90) == 0


@pytest.mark.slow
async def test_a_server_that_is_back_in_time_finds_its_worker(
    embedded: Settings, environ: dict[str, str], queue: str
) -> None:
    async with own_server(embedded, environ) as (running, own), worker_process(own, "--patience", "60") as process:
        await line(process)
        os.kill(running.pid, signal.SIGKILL)
        await running.stop(grace=5)
        await server.ensure(embedded)
        client = (await reach(embedded)).client
        plan = await start_plan(client, queue, tool="write_file", args={"path": "a.txt", "content": "x"})
        assert (await asyncio.wait_for(plan.result(), 90))["status"] == "completed"
        process.terminate()
        assert await asyncio.wait_for(process.wait(), 90) == 0


@pytest.mark.slow
async def test_time_in_which_a_worker_did_not_run_does_not_count_as_away(
    embedded: Settings, environ: dict[str, str], queue: str
) -> None:
    """As on a laptop that sleeps: the process stands still for longer than its patience, while its server is away."""
    async with own_server(embedded, environ) as (running, own), worker_process(own, "--patience", "12") as process:
        await line(process)
        process.send_signal(signal.SIGSTOP)
        os.kill(running.pid, signal.SIGKILL)
        await running.stop(grace=5)
        awake = time.monotonic() + 15
        await until(lambda: time.monotonic() > awake, "it stands still for longer than its patience")
        process.send_signal(signal.SIGCONT)
        await server.ensure(embedded)
        client = (await reach(embedded)).client
        plan = await start_plan(client, queue, tool="write_file", args={"path": "a.txt", "content": "x"})
        assert (await asyncio.wait_for(plan.result(), 90))["status"] == "completed"
        assert process.returncode is None


@pytest.mark.slow
async def test_a_worker_in_the_foreground_says_that_its_directory_is_gone_and_stays(
    environ: dict[str, str], state_dir: Path
) -> None:
    async with worker_process(environ) as process:
        await line(process)
        shutil.rmtree(state_dir)
        assert "is gone: steps that need it fail" in await line(process)
        assert process.returncode is None
        process.terminate()
        assert await asyncio.wait_for(process.wait(), 90) == 0


def _commands_with(text: str) -> list[int]:
    """The processes of this machine, zombies left out, with the text on their command line."""
    found = psutil.process_iter(["cmdline", "pid"])
    return [each.info["pid"] for each in found if text in " ".join(each.info["cmdline"] or [])]
