"""Several worker processes, and workers that take the steps of more queues than one."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from temporalio.client import Client

from plansurvive.runtime import daemon
from plansurvive.runtime.task_queues import listeners
from tests.kit.driving import Plans, step
from tests.kit.waiting import until
from tests.nightly import only_nightly, only_sampled
from tests.test_worker import line, worker_process

ROOT = Path(__file__).parent.parent


async def pids(client: Client, queue: str) -> set[int]:
    """The processes that listen to a queue now."""
    found = {int(re.findall(r"\d+", identity)[0]) for identity in await listeners(client, queue)}
    return {pid for pid in found if daemon.began(pid)}


@pytest.mark.slow
async def test_several_processes_share_a_queue_and_one_that_dies_is_replaced(
    environ: dict[str, str], temporal_client: Client, queue: str
) -> None:
    async with worker_process(environ, "--processes", "2") as process:
        assert {(await line(process))[:9], (await line(process))[:9]} == {"Worker 1:", "Worker 2:"}

        async def both() -> set[int] | None:
            found = await pids(temporal_client, queue)
            return found if len(found) == 2 else None

        first: set[int] = await until(both, "two processes listen")
        killed = min(first)
        os.kill(killed, signal.SIGKILL)
        assert "killed by SIGKILL" in await line(process)
        second: set[int] = await until(both, "two processes listen again")
        assert killed not in second
        assert len(first & second) == 1
        await line(process)  # the greeting of the new one
        process.terminate()
        assert await process.wait() == 0
        assert not [pid for pid in second if daemon.began(pid)]


@pytest.mark.slow
async def test_the_processes_end_when_the_one_that_keeps_them_is_killed(
    environ: dict[str, str], temporal_client: Client, queue: str
) -> None:
    async with worker_process(environ, "--processes", "2") as process:
        await line(process)
        await line(process)
        running = await pids(temporal_client, queue)
        process.kill()
        await until(lambda: not any(map(daemon.began, running)), "the processes have ended")


@pytest.mark.slow
async def test_processes_that_cannot_start_say_so_and_end_with_its_exit_code(environ: dict[str, str]) -> None:
    async with worker_process(environ | {"TEMPORAL_ADDRESS": "127.0.0.1:9"}, "--processes", "2") as process:
        _, errors = await process.communicate()
        assert "NOT_CONNECTED" in errors.decode()
        assert process.returncode == 3


@pytest.mark.parametrize("number", [only_sampled("0"), only_nightly("65"), only_nightly("many")])
async def test_a_number_of_processes_that_is_none_is_refused(environ: dict[str, str], number: str) -> None:
    async with worker_process(environ, "--processes", number) as process:
        _, errors = await process.communicate()
        assert "1 to 64" in errors.decode()
        assert process.returncode == 2


@pytest.mark.slow
async def test_two_workers_with_different_directories_each_take_the_steps_bound_to_them(
    environ: dict[str, str], temporal_client: Client, queue: str, workspace: Path, tmp_path: Path
) -> None:
    """As on two machines: the second has no directory of the first, only the state directory is shared."""
    far, bound = tmp_path / "far", f"{queue}-far"
    far.mkdir()
    (far / "data.txt").write_text("from afar " * 2_000)
    here = worker_process(environ)
    there = worker_process(environ, "--queue", f"{queue}-unused", "--queues", bound, "--workspace", str(far))
    async with here as one, there as other:
        await line(one)
        assert f"'{bound}'" in await line(other)
        steps = [
            {"id": "read", "tool": "read_file", "args": {"path": "data.txt"}, "queue": bound},
            {"id": "write", "tool": "write_file", "args": {"path": "copy.txt", "content": "$read"}},
            {"id": "list", "tool": "list_directory", "args": {"path": "."}, "queue": bound, "dependsOn": ["write"]},
        ]
        view = await Plans(temporal_client, queue, workspace).run(steps)
        assert view["status"] == "completed", view["log"]
        assert (workspace / "copy.txt").read_text() == "from afar " * 2_000
        assert [item["name"] for item in step(view, "list")["result"]["value"]] == ["data.txt"]


@pytest.mark.slow
@pytest.mark.sampled
def test_a_worker_imports_nothing_of_the_user_side() -> None:
    program = "import sys, plansurvive.worker; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert {f"plansurvive.{name}" for name in ("plans", "runtime", "activities", "workflows", "features")} <= loaded
    assert not loaded & {"plansurvive.client", "typer", "textual", "starlette", "uvicorn", "jinja2"}
