"""`plan up`, by hand and as a service: whatever dies is started again, and a plan continues without a command."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from plansurvive.apps.service.install import SYSTEMD, Service
from plansurvive.apps.service.unit import variables_text
from plansurvive.runtime import daemon, server, up
from plansurvive.runtime.connect import reach
from plansurvive.runtime.server import Server
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.task_queues import WORKER, listeners
from tests.client.cli.command import line_with, plan, plan_process, running
from tests.kit.waiting import until

ROOT = Path(__file__).parents[3]
STEPS = [
    {"id": "wait", "tool": "run_command", "args": {"command": "touch begun; while [ ! -e go ]; do sleep 0.05; done"}},
    {"id": "write", "tool": "write_file", "args": {"path": "done.txt", "content": "x"}, "dependsOn": ["wait"]},
]


@pytest.fixture
def own(environ: dict[str, str], state_dir: Path, temporal_binary: Path) -> dict[str, str]:
    """The environment of commands with an embedded server on ports of its own."""
    variables = {name: text for name, text in environ.items() if not name.startswith("TEMPORAL_")}
    variables |= {"PLANS_SERVER": "embedded", "TEMPORAL_CONFIG_FILE": os.devnull, "PLANS_AUTO_WORKER": "off"}
    port, ui_port = server.free_ports(0, 0)
    before = Server(pid=0, began="", address=f"{server.HOST}:{port}", ui=f"http://{server.HOST}:{ui_port}")
    before.write(server.record(Settings.read(variables)))
    return variables


async def workers(settings: Settings) -> list[int]:
    """The processes that poll the queue now."""
    found = await listeners((await reach(settings)).client, settings.task_queue)
    return [int(each.removeprefix(WORKER).partition("@")[0]) for each in found]


async def started(own: dict[str, str], tmp_path: Path, workspace: Path) -> None:
    """A plan whose first step runs."""
    file = tmp_path / "plan.json"
    file.write_text(json.dumps({"id": "kept", "steps": STEPS}))
    begun = await plan(own, "start", str(file), "--yes", "--id", "kept")
    assert begun.code == 0, begun.err
    await until(lambda: (workspace / "begun").exists(), "the first step runs")


async def completed(own: dict[str, str], workspace: Path) -> None:
    """Let the plan end, and wait until it has."""
    (workspace / "go").touch()
    await until(lambda: (workspace / "done.txt").exists(), "the plan continues")

    async def status() -> bool:
        return bool((await plan(own, "summary", "kept", "--json")).json["status"] == "completed")

    await until(status, "the plan has completed", every=0.5)


@pytest.mark.slow
async def test_a_plan_continues_when_server_and_worker_are_killed(
    own: dict[str, str], tmp_path: Path, workspace: Path
) -> None:
    settings = Settings.read(own)
    async with running(own, "up") as process:
        await line_with(process, "Listening")
        await started(own, tmp_path, workspace)
        first = server.recorded(settings)
        assert first
        [worker] = await workers(settings)
        os.kill(first.pid, signal.SIGKILL)
        os.kill(worker, signal.SIGKILL)
        await completed(own, workspace)
        second = server.recorded(settings)
        assert second
        assert (second.address, second.ui) == (first.address, first.ui)
        process.terminate()
        assert await asyncio.wait_for(process.wait(), 90) == 0
    assert server.recorded(settings) is None


@pytest.mark.slow
async def test_its_worker_ends_with_it_and_a_plan_continues_when_it_is_started_again(
    own: dict[str, str], tmp_path: Path, workspace: Path
) -> None:
    settings = Settings.read(own)
    async with running(own, "up") as process:
        await line_with(process, "Listening")
        await started(own, tmp_path, workspace)
        present = up.recorded(settings)
        assert present
        assert present.pid == process.pid
        [worker] = await workers(settings)
        process.kill()
        await process.wait()
    await until(lambda: daemon.began(worker) is None, "its worker has ended")
    assert server.recorded(settings)
    async with running(own, "up") as process:
        await completed(own, workspace)
        assert (await plan(own, "down")).code == 0
        assert await asyncio.wait_for(process.wait(), 90) == 0
    assert server.recorded(settings) is None


@asynccontextmanager
async def service(own: dict[str, str]) -> AsyncIterator[asyncio.subprocess.Process]:
    """What an installed unit says, started as systemd would: its command, directory and file of variables."""
    installed = Service(Settings.read(own), own, "linux")
    installed.variables.write_text(variables_text(installed.given()))
    says = dict(row.split("=", 1) for row in installed.text().splitlines() if "=" in row and not row.startswith("#"))
    shell = ["/bin/sh", "-c", 'set -a && . "$0" && exec "$@"', says["EnvironmentFile"], *shlex.split(says["ExecStart"])]
    environ = {"HOME": own.get("HOME", "/"), "PATH": "/usr/bin:/bin"}
    process = await asyncio.create_subprocess_exec(
        *shell,
        cwd=says["WorkingDirectory"],
        env=environ,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@pytest.mark.slow
async def test_what_the_unit_says_continues_a_plan_after_everything_was_killed(
    own: dict[str, str], tmp_path: Path, workspace: Path
) -> None:
    settings = Settings.read(own)
    async with service(own) as process:
        await line_with(process, "Listening")
        await started(own, tmp_path, workspace)
        first, [worker] = server.recorded(settings), await workers(settings)
        assert first
        for pid in (process.pid, worker, first.pid):
            os.kill(pid, signal.SIGKILL)
    async with service(own) as process:
        await completed(own, workspace)
        second = server.recorded(settings)
        assert second
        assert (second.address, second.ui) == (first.address, first.ui)
        process.terminate()
        assert await asyncio.wait_for(process.wait(), 90) == 0


@pytest.mark.slow
async def test_doctor_says_whether_the_service_runs_this_code(own: dict[str, str], tmp_path: Path) -> None:
    """With a program in place of systemctl, which notes what it is told: the manager of a user needs a machine."""
    programs, told = tmp_path / "bin", tmp_path / "told"
    programs.mkdir()
    (programs / "systemctl").write_text(f'#!/bin/sh\necho "$@" >> {told}\n[ "$2" != is-enabled ] || echo enabled\n')
    (programs / "systemctl").chmod(0o755)
    variables = own | {"PATH": f"{programs}:{own['PATH']}", "XDG_CONFIG_HOME": str(tmp_path), "OPENAI_API_KEY": "sk-1"}
    installed = await plan_process(variables, "up", "--install")
    assert installed.code == 0, installed.err
    assert told.read_text().splitlines() == [
        f"--user {call}" for call in ("show-environment", "daemon-reload", f"enable {SYSTEMD}", f"restart {SYSTEMD}")
    ]
    unit, held = tmp_path / "systemd/user" / SYSTEMD, Path(own["PLANS_STATE_DIR"]) / "service.env"
    assert "sk-1" not in unit.read_text()
    assert 'OPENAI_API_KEY="sk-1"' in held.read_text()
    assert held.stat().st_mode & 0o077 == 0
    assert "not running" in (await service_of(variables, "warning"))
    async with running(own, "up") as process:
        await line_with(process, "Listening")
        assert "runs this code" in (await service_of(variables, "good"))
        present = up.recorded(Settings.read(own))
        assert present
        record = Settings.read(own).state_dir / "up.json"
        present.model_copy(update={"code": "older"}).write(record)
        assert "another version of this code" in (await service_of(variables, "warning"))
        present.write(record)
        unit.write_text(unit.read_text() + "# edited")
        assert "plan up --install" in (await service_of(variables, "warning"))
        process.terminate()
        assert await asyncio.wait_for(process.wait(), 90) == 0
    assert (await plan_process(variables, "up", "--uninstall")).code == 0
    assert not unit.exists()
    assert not held.exists()
    assert "not installed" in (await service_of(variables, "good"))


async def service_of(variables: dict[str, str], verdict: str) -> str:
    """What `plan doctor` says about the service, with this verdict."""
    findings = (await plan(variables, "doctor", "--json")).json
    found = next(each for each in findings if each["subject"] == "service")
    assert found["verdict"] == verdict, found
    return str(found["text"])


@pytest.mark.slow
async def test_one_thing_at_a_time_is_asked_of_a_service(own: dict[str, str]) -> None:
    both = await plan_process(own, "up", "--install", "--print")
    assert (both.code, "BAD_USAGE" in both.err) == (2, True)
    printed = await plan_process(own | {"OPENAI_API_KEY": "sk-1"}, "up", "--print")
    assert "ExecStart=" in printed.out
    assert "OPENAI_API_KEY" in printed.out
    assert "sk-1" not in printed.out + printed.err


@pytest.mark.slow
@pytest.mark.in_turn
def test_the_command_of_the_service_is_found_from_its_directory() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "plansurvive", "up", "--help"], cwd=ROOT, capture_output=True, check=False
    )
    assert b"--install" in done.stdout
