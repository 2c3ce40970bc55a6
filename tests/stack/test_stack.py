"""A plan on the real server with PostgreSQL, as docker-compose.yml runs it."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from temporalio.client import Client, WorkflowHandle

from plansurvive.runtime.settings import Settings
from plansurvive.runtime.task_queues import listeners

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def stack_environ(stack: str, queue: str, state_dir: Path, workspace: Path) -> dict[str, str]:
    """The environment of a worker or command on the stack."""
    return {
        **{name: os.environ[name] for name in ("HOME", "PATH")},
        "TEMPORAL_ADDRESS": stack,
        "PLANS_TASK_QUEUE": queue,
        "PLANS_STATE_DIR": str(state_dir),
        "PLANS_WORKSPACE": str(workspace),
        "PYTHONPATH": str(ROOT),
    }


@pytest_asyncio.fixture
async def worker_process(stack_environ: dict[str, str], python: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """worker.py, listening."""
    process = await asyncio.create_subprocess_exec(
        python, str(ROOT / "worker.py"), env=stack_environ, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout
    assert "Listening" in (await process.stdout.readline()).decode()
    yield process
    if process.returncode is None:
        process.terminate()
        assert await process.wait() == 0


@pytest.fixture
def python() -> str:
    """This interpreter."""
    import sys

    return sys.executable


async def start(client: Client, queue: str, steps: list[dict[str, Any]]) -> WorkflowHandle[Any, Any]:
    request = {"plan": {"title": f"Stack {queue}", "steps": steps}, "options": {}}
    return await client.start_workflow(
        "PlanWorkflow",
        request,
        id=f"plan-{uuid.uuid4().hex}",
        task_queue=queue,
        execution_timeout=timedelta(minutes=2),
    )


async def test_a_plan_runs_on_the_real_server(
    stack_client: Client, worker_process: asyncio.subprocess.Process, queue: str, workspace: Path
) -> None:
    plan = await start(
        stack_client,
        queue,
        [
            {"id": "make", "tool": "write_file", "args": {"path": "a.txt", "content": "hello"}},
            {"id": "copy", "tool": "write_file", "args": {"path": "b.txt", "content": "$read"}},
            {"id": "read", "tool": "read_file", "args": {"path": "a.txt"}, "dependsOn": ["make"]},
        ],
    )
    await plan.result()
    assert (workspace / "b.txt").read_text() == "hello"
    await found(stack_client, f'PlanStatus = "completed" AND PlanTitle = "Stack {queue}"')


async def test_an_approval_by_signal_lets_a_step_run_and_the_plan_is_found_while_it_waits(
    stack_client: Client, worker_process: asyncio.subprocess.Process, queue: str, workspace: Path
) -> None:
    plan = await start(stack_client, queue, [{"id": "ask", "tool": "run_command", "args": {"command": "touch ran"}}])
    await found(stack_client, f'PlanPending = "ask" AND WorkflowId = "{plan.id}"')
    assert not (workspace / "ran").exists()
    await plan.signal("approve", {"stepId": "ask", "by": "tester"})
    await plan.result()
    assert (workspace / "ran").exists()


async def test_a_killed_worker_loses_nothing(
    stack_client: Client,
    worker_process: asyncio.subprocess.Process,
    stack_environ: dict[str, str],
    queue: str,
    workspace: Path,
    python: str,
) -> None:
    chain = [
        {
            "id": f"s{number}",
            "tool": "run_command",
            "args": {"command": f"echo {number} >> log"},
            "requiresApproval": False,
            "dependsOn": [f"s{number - 1}"] if number else [],
        }
        for number in range(12)
    ]
    plan = await start(stack_client, queue, chain)
    async with asyncio.timeout(60):
        while not (workspace / "log").exists():
            await asyncio.sleep(0.02)
    worker_process.kill()
    await worker_process.wait()
    assert worker_process.pid
    second = await asyncio.create_subprocess_exec(python, str(ROOT / "worker.py"), env=stack_environ)
    try:
        await asyncio.wait_for(plan.result(), 90)
    finally:
        second.terminate()
        assert await second.wait() == 0
    done = [int(line) for line in (workspace / "log").read_text().split()]
    assert sorted(set(done)) == list(range(12))


async def test_the_health_check_of_the_image_tells_a_listening_worker_from_none(
    stack_client: Client, worker_process: asyncio.subprocess.Process, stack_environ: dict[str, str], python: str
) -> None:
    async def health() -> int:
        check = await asyncio.create_subprocess_exec(
            python, "-m", "plansurvive.runtime.health", env=stack_environ, cwd=ROOT
        )
        return await check.wait()

    async with asyncio.timeout(60):
        while not await listeners(stack_client, Settings.read(stack_environ).task_queue):
            await asyncio.sleep(0.1)
    assert await health() == 0
    worker_process.terminate()
    assert await worker_process.wait() == 0
    assert await health() == 1


async def found(client: Client, query: str) -> None:
    """Wait until the server's index has exactly one such workflow."""
    async with asyncio.timeout(60):
        while (await client.count_workflows(query)).count != 1:
            await asyncio.sleep(0.1)
