"""The background worker: one for each server and queue, replaced when its settings change, gone when told to go."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.client import Client
from temporalio.worker import Worker

from plansurvive.runtime.background_worker import ensure_worker, recorded, stop_workers, worker_code
from plansurvive.runtime.base.code_place import CODE
from plansurvive.runtime.connect import Connection, reach
from plansurvive.runtime.settings import SettingError, Settings, said
from plansurvive.runtime.task_queues import listeners
from tests.kit.waiting import until


@pytest_asyncio.fixture
async def connection(settings: Settings) -> AsyncIterator[Connection]:
    """A connection to the test's server; background workers started for it are stopped at the end."""
    yield await reach(settings)
    await stop_workers(settings.with_flags(grace=1))


@pytest.mark.slow
async def test_it_listens_when_ensured_and_a_second_call_finds_it(settings: Settings, connection: Connection) -> None:
    first, second = await asyncio.gather(ensure_worker(settings, connection), ensure_worker(settings, connection))
    assert first is not None
    assert first == second
    assert recorded(settings) == [first]
    assert first.identity in await listeners(connection.client, settings.task_queue)


@pytest.mark.slow
@pytest.mark.sampled
async def test_a_killed_one_is_replaced_and_not_taken_for_alive(settings: Settings, connection: Connection) -> None:
    first = await ensure_worker(settings, connection)
    assert first
    os.kill(first.pid, signal.SIGKILL)
    await first.stop(grace=5)
    assert first.identity not in await listeners(connection.client, settings.task_queue)
    second = await ensure_worker(settings, connection)
    assert second
    assert second.pid != first.pid


@pytest.mark.slow
@pytest.mark.sampled
async def test_it_is_replaced_once_a_file_has_changed_that_it_read_at_its_start(
    settings: Settings, connection: Connection
) -> None:
    first = await ensure_worker(settings, connection)
    (settings.state_dir / "agents.toml").write_text('[agents.a]\ncommand = ["true"]\napprove = "never"\n')
    second = await ensure_worker(settings, connection)
    assert first is not None
    assert second is not None
    assert second.pid != first.pid


@pytest.mark.slow
async def test_who_only_looks_or_decides_takes_the_worker_that_is_there_whatever_its_settings(
    settings: Settings, connection: Connection
) -> None:
    first = await ensure_worker(settings.with_flags(approvals="strict"), connection)
    assert first
    assert await ensure_worker(settings, connection, as_set=False) == first
    told = list[str]()
    second = await ensure_worker(settings.with_flags(workspaces=("/tmp",)), connection, say=told.append)
    assert second
    assert second != first
    assert [each.partition(":")[0] for each in told] == [
        "The background worker has other settings than this command (PLANS_APPROVALS, PLANS_WORKSPACES)"
    ]


@pytest.mark.slow
async def test_other_code_means_another_worker_for_everybody(settings: Settings, connection: Connection) -> None:
    first = await ensure_worker(settings.with_flags(approvals="strict"), connection)
    assert first
    [record] = settings.state_dir.glob("worker-*.json")
    first.model_copy(update={"code": "older"}).write(record)
    second = await ensure_worker(settings, connection, as_set=False)
    assert second
    assert second.pid != first.pid


@pytest.mark.slow
async def test_other_settings_mean_another_worker_while_the_first_finishes_its_steps(
    settings: Settings, connection: Connection, workspace: Path
) -> None:
    first = await ensure_worker(settings, connection)
    plan = {
        "steps": [
            {"id": "a", "tool": "run_command", "args": {"command": "touch begun; until [ -e go ]; do sleep 0.05; done"}}
        ]
    }
    running = await connection.client.start_workflow(
        "PlanWorkflow", {"plan": plan, "options": {"approveAll": True}}, id="plan-kept", task_queue=settings.task_queue
    )
    await until((workspace / "begun").exists, "the step runs")
    second = await ensure_worker(settings.with_flags(approvals="strict"), connection)
    assert first
    assert second
    assert first.pid != second.pid
    assert {worker.pid for worker in recorded(settings)} == {first.pid, second.pid}
    (workspace / "go").touch()
    summary = await running.result()
    assert summary["status"] == "completed"
    await until(lambda: not first.is_alive(), "the worker with the other settings ends")


@pytest.mark.slow
def test_the_code_it_is_known_by_is_all_that_a_worker_imports(settings: Settings) -> None:
    program = "import sys, plansurvive.worker; print(*(getattr(m, '__file__', '') for m in sys.modules.values()))"
    done = subprocess.run([sys.executable, "-c", program], cwd=CODE, capture_output=True, text=True, check=True)
    packages = {str(CODE / name) for name in ("plans", "runtime", "activities", "workflows", "client", "features")}
    imported = {path for path in done.stdout.split() if path.startswith(tuple(packages))} | {str(CODE / "worker.py")}
    assert len(imported) > 100
    assert imported <= {str(path) for path in worker_code(settings)}


async def test_none_is_started_where_somebody_listens_already(
    settings: Settings, connection: Connection, worker: Worker, temporal_client: Client
) -> None:
    await until(lambda: listeners(temporal_client, settings.task_queue), "the worker polls")
    assert await ensure_worker(settings, connection) is None


async def test_none_is_started_when_it_is_switched_off_or_the_server_is_elsewhere(
    settings: Settings, connection: Connection
) -> None:
    assert await ensure_worker(settings.with_flags(auto_worker=False), connection) is None
    elsewhere = Connection(connection.client, "temporal.example:7233", connection.origin)
    assert await ensure_worker(settings, elsewhere) is None


@pytest.mark.slow
@pytest.mark.sampled
async def test_a_setting_that_it_cannot_start_with_is_told_as_one(settings: Settings, connection: Connection) -> None:
    with pytest.raises(SettingError) as caught:
        await ensure_worker(settings.with_flags(tools="no.such.module"), connection)
    assert caught.value.code == "BAD_SETTING:PLANS_TOOLS"
    assert said(caught.value).startswith("BAD_SETTING: PLANS_TOOLS: ")
    assert said(caught.value).count("PLANS_TOOLS") == 1


async def test_none_is_started_with_a_file_that_it_could_not_read(settings: Settings, connection: Connection) -> None:
    settings.make_state_dir()
    (settings.state_dir / "limits.toml").write_text("[tools.http_request]\nrate = 60\n")
    (settings.state_dir / "limits.toml").chmod(0o600)
    with pytest.raises(SettingError, match=r"limits.toml: line 2, tools.http_request.rate: write a rate as text"):
        await ensure_worker(settings, connection)
    assert not list(settings.state_dir.glob("worker-*.log"))


@pytest.mark.slow
async def test_stopping_ends_all_of_them(settings: Settings, connection: Connection) -> None:
    running = await ensure_worker(settings, connection)
    assert running
    assert await stop_workers(settings) == [running]
    assert not running.is_alive()
    assert await stop_workers(settings) == []
