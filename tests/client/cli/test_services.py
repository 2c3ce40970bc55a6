"""What plans run on: a worker in the foreground, a server with it, and the end of both."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from plansurvive.runtime import server
from plansurvive.runtime.server import Server
from plansurvive.runtime.settings import Settings
from tests.client.cli.command import CEILING, line_with, plan, plan_process, running, told_to_stop, written
from tests.kit.waiting import until

WRITE = {"id": "write", "tool": "write_file", "args": {"path": "a.txt", "content": "hello"}}


@pytest.mark.slow
async def test_the_worker_command_is_the_worker_with_its_flags_and_signals(environ: dict[str, str]) -> None:
    async with running(environ, "worker", "--max-activities", "2") as process:
        assert environ["PLANS_TASK_QUEUE"] in await line_with(process, "Listening")
        process.send_signal(signal.SIGTERM)
        await line_with(process, "Stopped.")
        assert await process.wait() == 0
    assert "--queue" in (await plan_process(environ, "worker", "--help")).out
    assert (await plan_process(environ, "worker", "--queue", "")).code == 2


@pytest.mark.slow
async def test_who_follows_a_plan_finds_the_server_on_other_ports_and_so_does_its_worker(
    environ: dict[str, str], tmp_path: Path, workspace: Path, temporal_binary: Path
) -> None:
    own = {name: value for name, value in environ.items() if not name.startswith("TEMPORAL_")}
    own["PLANS_SERVER"] = "embedded"
    settings = Settings.read(own)
    ports = server.free_ports(0, 0)
    place = {"address": f"{server.HOST}:{ports[0]}", "ui": f"http://{server.HOST}:{ports[1]}"}
    Server(pid=0, began="", **place).write(server.record(settings))
    command = {"command": "touch begun; while [ ! -e go ]; do sleep 0.05; done"}
    wait = {"id": "wait", "tool": "run_command", "args": command}
    file = written(tmp_path / "plan.json", {"id": "followed", "steps": [wait, {**WRITE, "dependsOn": ["wait"]}]})
    try:
        async with running(own, "run", file, "--yes") as process:
            await until(lambda: (workspace / "begun").exists(), "the first step runs")
            first = server.recorded(settings)
            assert first
            os.kill(first.pid, signal.SIGKILL)
            await first.stop(grace=5)
            await until(lambda: server.free_ports(*ports) == ports, "its ports are free")
            with ExitStack() as held:
                for port in ports:
                    held.enter_context(socket.create_server((server.HOST, port)))
                listed = await plan(own, "list")
                assert "started by plan in the background" in listed.err
                assert "Server " not in (await plan(own, "list")).err
            (workspace / "go").touch()
            out, err = await asyncio.wait_for(process.communicate(), CEILING)
            assert process.returncode == 0
            assert "✓ completed   2 of 2 steps" in out.decode()
            both = listed.err + (err or out).decode()
            assert "it moves to port" in both, "whichever of the two was the first to start it"
    finally:
        await plan(own, "down")


@pytest.mark.slow
async def test_up_serves_plans_until_it_is_told_to_stop_and_keeps_their_data(
    environ: dict[str, str], tmp_path: Path, workspace: Path, temporal_binary: Path
) -> None:
    own = {name: value for name, value in environ.items() if not name.startswith("TEMPORAL_")}
    own["PLANS_SERVER"] = "embedded"
    file = written(tmp_path / "plan.json", {"steps": [WRITE]})
    for name in ("first", "second"):
        async with running(own, "up") as process:
            await line_with(process, "Listening")
            assert (await plan(own, "run", file, "--id", name, "--yes")).code == 0
            shown = await asyncio.gather(*(plan(own, "show", each) for each in ("first", name)))
            assert [each.code for each in shown] == [0, 0]
            told = await told_to_stop(process, signal.SIGINT)
        assert process.returncode == 0
        assert "its data stays on disk" in told
    assert "Nothing was running" in (await plan(own, "down")).out
    assert (await plan(own, "down", "--json")).json == {"workers": [], "server": None}
