"""worker.py as a program: what it says, how it stops, what it refuses; and the Worker it builds."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client
from temporalio.worker import Worker

from tests.kit.driving import CEILING
from tests.kit.host import has_crashed
from tests.kit.waiting import until
from tests.nightly import only_nightly, only_sampled

ROOT = Path(__file__).parent.parent


@asynccontextmanager
async def worker_process(environ: dict[str, str], *flags: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """worker.py, running; killed at the end if it still runs."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(ROOT / "worker.py"), *flags),
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
        assert not has_crashed(process.returncode), process.returncode


async def line(process: asyncio.subprocess.Process) -> str:
    assert process.stdout
    text = (await asyncio.wait_for(process.stdout.readline(), 60)).decode()
    assert text, (await process.stderr.read()).decode() if process.stderr else ""
    return text


async def start_plan(client: Client, queue: str, **step: Any) -> Any:
    plan = {"steps": [{"id": "one", **step}]}
    return await client.start_workflow(
        "PlanWorkflow",
        {"plan": plan, "options": {"approveAll": True}},
        id=f"plan-{queue}",
        task_queue=queue,
        execution_timeout=CEILING,
    )


async def test_a_plan_runs_in_a_worker_built_from_settings(
    temporal_client: Client, worker: Worker, queue: str, workspace: Path
) -> None:
    plan = await start_plan(temporal_client, queue, tool="write_file", args={"path": "a.txt", "content": "hello"})
    await plan.result()
    assert (workspace / "a.txt").read_text() == "hello"


@pytest.mark.slow
async def test_it_says_what_it_listens_to_and_stops_when_asked(
    environ: dict[str, str], queue: str, workspace: Path
) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        async with worker_process(environ) as process:
            greeting = await line(process)
            assert f"queue '{queue}' in namespace 'default' at {environ['TEMPORAL_ADDRESS']}" in greeting
            assert str(workspace) in greeting
            process.send_signal(number)
            output, errors = await asyncio.wait_for(process.communicate(), 60)
            assert output.decode().splitlines()[-1] == "Stopped."
            assert (process.returncode, errors) == (0, b"")


@pytest.mark.slow
async def test_a_running_step_may_finish_within_the_grace(
    environ: dict[str, str], temporal_client: Client, queue: str, workspace: Path
) -> None:
    async with worker_process(environ, "--grace", "30") as process:
        await line(process)
        command = "touch begun; while [ ! -e go ]; do sleep 0.05; done; echo done > end"
        plan = await start_plan(temporal_client, queue, tool="run_command", args={"command": command})
        await until((workspace / "begun").exists, "the step runs")
        process.terminate()
        assert "30 s to finish" in await line(process)
        (workspace / "go").touch()
        assert await process.wait() == 0
        assert (workspace / "end").read_text() == "done\n"
    history = json.loads((await plan.fetch_history()).to_json())
    assert "EVENT_TYPE_ACTIVITY_TASK_COMPLETED" in [event["eventType"] for event in history["events"]]
    await plan.terminate()


@pytest.mark.slow
async def test_a_second_signal_ends_it_at_once(
    environ: dict[str, str], temporal_client: Client, queue: str, workspace: Path
) -> None:
    async with worker_process(environ, "--grace", "600") as process:
        await line(process)
        plan = await start_plan(temporal_client, queue, tool="run_command", args={"command": "touch begun; sleep 600"})
        await until((workspace / "begun").exists, "the step runs")
        process.terminate()
        await line(process)
        process.terminate()
        assert await process.wait() == 130
    await plan.terminate()


@pytest.mark.slow
async def test_flags_come_before_the_environment(environ: dict[str, str], queue: str, state_dir: Path) -> None:
    example = str(ROOT / "examples/tools/word_count.py")
    async with worker_process(environ, "--queue", f"{queue}-2", "--tools", example) as process:
        assert f"queue '{queue}-2'" in await line(process)


@pytest.mark.parametrize(
    ("flags", "variables", "code", "name"),
    [
        only_nightly(["--max-activities", "many"], {}, 2, "BAD_SETTING: PLANS_MAX_ACTIVITIES"),
        only_sampled(["--workspace", "/no/such"], {}, 2, "BAD_SETTING: PLANS_WORKSPACE"),
        only_nightly(["--tools", "no.such.module"], {}, 2, "BAD_SETTING: PLANS_TOOLS"),
        only_nightly(["--address", "x"], {}, 2, "BAD_SETTING:TEMPORAL_ADDRESS"),
        only_nightly([], {"PLANS_GRACE": "soon"}, 2, "BAD_SETTING: PLANS_GRACE"),
        only_nightly([], {"PLANS_STATE_DIR": "/dev/null/state"}, 2, "BAD_SETTING: PLANS_STATE_DIR"),
        only_nightly([], {"PLANS_QUEUE": "x"}, 2, "PLANS_QUEUES"),
        only_nightly(["--address", "127.0.0.1:9"], {}, 3, "NOT_CONNECTED"),
        only_nightly([], {"TEMPORAL_NAMESPACE": "nowhere"}, 3, "nowhere"),
        only_nightly(["--no-such-flag"], {}, 2, "--no-such-flag"),
    ],
)
async def test_what_it_cannot_start_with_is_named_and_has_its_exit_code(
    environ: dict[str, str], flags: list[str], variables: dict[str, str], code: int, name: str
) -> None:
    async with worker_process(environ | variables, *flags) as process:
        _, errors = await process.communicate()
        assert name in errors.decode()
        assert "Traceback" not in errors.decode()
        assert process.returncode == code


def test_the_environment_of_these_tests_leaves_no_setting_to_chance(environ: dict[str, str]) -> None:
    assert not {name for name in os.environ if name.startswith("PLANS_")} - set(environ)


def test_what_a_worker_says_of_a_setting_holds_no_escapes(environ: dict[str, str]) -> None:
    hostile = environ | {"PLANS_TOOLS": "/none/\x1b]0;title\x07.py"}
    command = [sys.executable, str(ROOT / "worker.py")]
    ended = subprocess.run(command, env=hostile, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 2
    assert "BAD_SETTING: PLANS_TOOLS" in ended.stderr
    assert "\x1b" not in ended.stderr
