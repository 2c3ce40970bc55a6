"""`prune`: what nothing refers to goes, what anything still leads to stays."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleSpec,
)

from plansurvive.activities.tools.registry import load_tools
from plansurvive.client import end_records
from plansurvive.features.outputs.feed import raw
from plansurvive.features.upkeep.prune import PruneRefused, prune
from plansurvive.plans.errors import PlanError
from plansurvive.runtime import namespaces
from plansurvive.runtime.connect import connect, storage
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.storage import LocalDirectory
from plansurvive.runtime.value_store import ValueStore
from plansurvive.worker import build
from tests.client.cli.command import plan as command
from tests.kit.driving import Plans, Started, count, step
from tests.kit.waiting import until

DAY = timedelta(days=1)
BIG = "b" * 100_000


@pytest_asyncio.fixture
async def client(settings: Settings) -> Client:
    """A client whose values are in the test's own state directory."""
    return await connect(settings)


@pytest_asyncio.fixture
async def plans(client: Client, settings: Settings, workspace: Path) -> AsyncIterator[Plans]:
    """Plans that a worker with that directory works on."""
    async with build(client, settings, load_tools(()), indexed=True):
        yield Plans(client, settings.task_queue, workspace)


def files(settings: Settings) -> set[Path]:
    return {path for path in (settings.state_dir / "values").rglob("*") if path.is_file()}


def make_old(settings: Settings) -> None:
    """Let every stored value be two days old."""
    for path in files(settings):
        os.utime(path, (time.time() - 2 * 86_400,) * 2)


async def stray(settings: Settings, text: str = "nobody wants me") -> Path:
    """A value that nothing refers to."""
    before = files(settings)
    driver = storage(settings)
    assert isinstance(driver, LocalDirectory)
    await ValueStore(driver).put(f'"{text}"')
    [path] = files(settings) - before
    return path


async def with_big_value(plans: Plans, workspace: Path) -> Started:
    """A plan that has read a big file, and still waits for a person."""
    (workspace / "big.txt").write_text(plans.queue + BIG)
    read = {"id": "r", "tool": "read_file", "args": {"path": "big.txt"}}
    write = {"id": "w", "tool": "write_file", "args": {"path": "copy.txt", "content": "$r"}, "requiresApproval": True}
    started = await plans.start([read, write])
    await started.until_asked("w")
    await listed(started)
    return started


async def listed(started: Started) -> None:
    """Until the server's index, a little later than the server itself, has the newest run of a plan."""
    run_id = (await started.handle.describe()).run_id
    await until(lambda: count(started.client, f"RunId = '{run_id}'"), "the run is listed")


@pytest.mark.slow
@pytest.mark.in_turn
async def test_what_no_workflow_refers_to_goes_and_what_a_plan_needs_stays(
    plans: Plans, client: Client, settings: Settings, workspace: Path
) -> None:
    started = await with_big_value(plans, workspace)
    needed, lost = files(settings), await stray(settings)
    make_old(settings)
    found = await prune(client, settings, older_than=DAY)
    assert files(settings) == needed
    assert not lost.exists()
    assert (found.removed, found.kept, found.young) == (1, len(needed), 0)
    await started.approve("w")
    assert step(await started.ended(), "w")["status"] == "completed"
    assert (workspace / "copy.txt").read_text() == plans.queue + BIG


@pytest.mark.slow
async def test_output_of_a_command_that_still_runs_stays(
    plans: Plans, client: Client, settings: Settings, workspace: Path
) -> None:
    writes = "seq 1 100000; sleep 1.5; seq 1 100000; touch old; until [ -e go ]; do sleep 0.05; done"
    build = {"id": "b", "tool": "run_command", "args": {"command": writes}, "requiresApproval": False}
    write = {"id": "w", "tool": "write_file", "args": {"path": "copy.txt", "content": "$b.stdout"}, "dependsOn": ["b"]}
    started = await plans.start([build, write])
    await until(lambda: is_reported(started, 2 * 588_895), "both halves are in the heartbeat")
    await listed(started)
    make_old(settings)
    await prune(client, settings, older_than=DAY)
    (workspace / "go").touch()
    assert step(await started.ended(), "w")["status"] == "completed"
    make_old(settings)
    await prune(client, settings, older_than=DAY)
    numbers = "".join(f"{number}\n" for number in range(1, 100_001))
    assert (workspace / "copy.txt").read_text() == 2 * numbers
    store = ValueStore(storage(settings))
    assert b"".join([data async for data in raw(client, store, started.id, "b", 1)]).decode() == 2 * numbers


async def is_reported(started: Started, size: int) -> bool:
    """Whether a heartbeat has told of so much output."""
    for pending in (await started.handle.describe()).raw_description.pending_activities:
        found = await started.client.data_converter.decode(pending.heartbeat_details.payloads)
        return bool(found and (found[0].get("logs") or {}).get("stdout") == size)
    return False


@pytest.mark.slow
async def test_a_value_that_only_a_stored_run_names_stays(
    plans: Plans, client: Client, settings: Settings, workspace: Path
) -> None:
    """After continue-as-new the Run itself is a stored value, and only it names the values of earlier runs."""
    (workspace / "big.txt").write_text(plans.queue + BIG)
    read = {"id": "r", "tool": "read_file", "args": {"path": "big.txt"}}
    more = [
        {"id": f"s{n}", "tool": "sleep", "args": {"seconds": 0.01}, "dependsOn": ["r"], "notes": "n" * 9_000}
        for n in range(12)
    ]
    write = {"id": "w", "tool": "write_file", "args": {"path": "copy.txt", "content": "$r"}, "requiresApproval": True}
    plans = replace(plans, options={"historyLimit": 10})
    started = await plans.start([read, *more, {**write, "dependsOn": [each["id"] for each in more]}])
    await started.until_asked("w")
    first = (await started.handle.describe()).raw_description.workflow_execution_info.first_run_id
    assert (await started.handle.describe()).run_id != first
    await listed(started)
    await delete(client, started.id, first)
    make_old(settings)
    await prune(client, settings, older_than=DAY)
    await started.approve("w")
    await started.ended()
    assert (workspace / "copy.txt").read_text() == plans.queue + BIG


@pytest.mark.slow
async def test_the_record_of_an_ended_plan_stays_with_its_history(
    plans: Plans, client: Client, settings: Settings, workspace: Path
) -> None:
    started = await plans.start([{"id": "a", "tool": "sleep", "args": {"seconds": 0.01}, "notes": "n" * 9_000}])
    await started.ended()
    await listed(started)
    assert files(settings)
    make_old(settings)
    await prune(client, settings, older_than=DAY)
    kept = await end_records.run_of_ended(client, started.id)
    assert kept is not None
    assert kept.plan.steps[0].notes == "n" * 9_000
    await delete(client, started.id)
    await prune(client, settings, older_than=DAY)
    assert not files(settings)


@pytest.mark.slow
@pytest.mark.in_turn
async def test_the_values_of_a_plan_go_with_its_history(
    plans: Plans, client: Client, settings: Settings, workspace: Path
) -> None:
    started = await with_big_value(plans, workspace)
    await started.deny("w")
    await started.ended()
    await delete(client, started.id)
    make_old(settings)
    found = await prune(client, settings, older_than=DAY)
    assert not files(settings)
    assert found.removed_bytes > len(BIG)


@pytest.mark.slow
@pytest.mark.in_turn
async def test_what_a_schedule_will_start_stays(client: Client, settings: Settings, queue: str) -> None:
    action = ScheduleActionStartWorkflow(
        "PlanWorkflow", {"plan": {"steps": [], "title": BIG}}, id=f"plan-{queue}", task_queue=queue
    )
    handle = await client.create_schedule(queue, Schedule(action=action, spec=ScheduleSpec()))

    async def is_listed() -> bool:
        return queue in [each.id async for each in await client.list_schedules()]

    await until(is_listed, "the schedule is listed")
    kept = files(settings)
    assert kept
    make_old(settings)
    await prune(client, settings, older_than=DAY)
    assert files(settings) == kept
    await handle.delete()


@pytest.mark.slow
async def test_what_is_young_stays_and_a_trial_removes_nothing(client: Client, settings: Settings) -> None:
    path = await stray(settings)
    assert (await prune(client, settings)).young == 1
    make_old(settings)
    found = await prune(client, settings, older_than=DAY, dry_run=True)
    assert (found.removed, found.dry_run) == (1, True)
    assert path.exists()


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_value_wanted_again_is_young_again(client: Client, settings: Settings) -> None:
    path = await stray(settings)
    make_old(settings)
    driver = storage(settings)
    await ValueStore(driver).put('"nobody wants me"')
    await prune(client, settings, older_than=DAY)
    assert path.exists()


async def test_what_a_killed_writer_left_goes_too(client: Client, settings: Settings) -> None:
    path = await stray(settings)
    left = path.with_name(".abc.tmp")
    left.write_bytes(b"half")
    make_old(settings)
    assert (await prune(client, settings, older_than=DAY)).removed == 2
    assert not left.exists()


async def test_it_refuses_while_the_directory_may_hold_values_of_another_server(
    client: Client, settings: Settings
) -> None:
    path = await stray(settings)
    make_old(settings)
    await namespaces.remember(settings, client, "here:7233")
    other = settings.state_dir / "namespaces" / "another"
    other.write_text("namespace 'default' at elsewhere:7233\n")
    with pytest.raises(PruneRefused, match="elsewhere:7233") as refused:
        await prune(client, settings, older_than=DAY)
    assert refused.value.code == "PRUNE_REFUSED"
    assert path.exists()
    other.unlink()
    assert (await prune(client, settings, older_than=DAY)).removed == 1


async def test_it_refuses_for_a_bucket_and_says_what_to_do(client: Client, settings: Settings) -> None:
    with pytest.raises(PlanError, match="lifecycle"):
        await prune(client, settings.with_flags(storage="s3://values"))


@pytest.mark.slow
@pytest.mark.in_turn
async def test_the_command_says_what_it_freed(environ: dict[str, str], settings: Settings) -> None:
    await stray(settings)
    make_old(settings)
    said = await command(environ, "prune", "--older-than", "1d")
    assert said.code == 0
    assert "1 values" in said.out
    again = await command(environ, "prune", "--older-than", "1d", "--json")
    assert (again.json["removed"], again.json["kept"]) == (0, 0)
    assert (await command(environ, "prune", "--older-than", "soon")).code == 2


async def delete(client: Client, workflow_id: str, run_id: str = "") -> None:
    """Delete a workflow, as the server does when its retention is over, and wait until no list shows it."""
    request = DeleteWorkflowExecutionRequest(namespace=client.namespace)
    request.workflow_execution.workflow_id, request.workflow_execution.run_id = workflow_id, run_id
    await client.workflow_service.delete_workflow_execution(request)
    run = f" AND RunId = '{run_id}'" if run_id else ""

    async def is_gone() -> bool:
        return (await client.count_workflows(f"WorkflowId = '{workflow_id}'{run}")).count == 0

    await until(is_gone, f"{workflow_id} is deleted")
