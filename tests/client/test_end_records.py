"""An ended plan is read from its record: no worker is needed, and it says what the workflow said."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter

from plansurvive.activities.tools.registry import load_tools
from plansurvive.client import end_records, runs
from plansurvive.client.errors import NoWorker
from plansurvive.plans.activity_io import END_RECORD, EndRecord
from plansurvive.plans.large_value import LargeValue
from plansurvive.plans.run import Options
from plansurvive.plans.views.queries import QUERIES
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.storage import LocalDirectory, converter
from plansurvive.worker import build
from tests.kit.waiting import until

WRITE = {"id": "write", "tool": "write_file", "args": {"path": "a.txt", "content": "hello"}}
READ = {"id": "read", "tool": "read_file", "args": {"path": "a.txt"}, "dependsOn": ["write"]}
MISSING = {"id": "missing", "tool": "read_file", "args": {"path": "none.txt"}, "critical": True}
GATE = {"id": "gate", "tool": "delete_file", "args": {"path": "a.txt"}}


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("steps", "status"),
    [([WRITE, READ], "completed"), ([WRITE, MISSING], "failed"), ([WRITE, GATE], "cancelled")],
    ids=["completed", "failed", "cancelled"],
)
async def test_every_query_is_answered_without_a_worker_as_the_workflow_answers_it(
    temporal_client: Client, settings: Settings, workspace: Path, queue: str, steps: list[Any], status: str
) -> None:
    plan = await _ended(temporal_client, settings, workspace, queue, steps, status)
    handle = temporal_client.get_workflow_handle(f"plan-{plan}")
    async with build(temporal_client, settings, load_tools(()), indexed=False):
        from_history = {query: await handle.query(query) for query in QUERIES if query not in ("call", "inside")}
        brief = await handle.query("plan", {"brief": True})
    for query, expected in from_history.items():
        found = await end_records.answer(temporal_client, plan, query, ())
        assert found is not None
        assert _undated(found.value) == _undated(expected), query
    assert _undated((await runs.brief(temporal_client, plan)).to_json()) == _undated(brief)
    assert (await runs.show(temporal_client, plan)).status == brief["status"] == status
    assert (await runs.summary(temporal_client, plan)).status.value == status
    named = await end_records.in_memo(temporal_client, await handle.describe())
    assert named is not None
    assert named.summary["status"] == status
    assert named == await _without_claim(temporal_client, plan)
    events = [event.seq async for event in runs.watch(temporal_client, plan)]
    assert events == [event["seq"] for event in from_history["events"]]
    late = [event.seq async for event in runs.watch(temporal_client, plan, since=events[2])]
    assert late == events[3:]


@pytest.mark.slow
async def test_a_terminated_plan_left_no_record_and_needs_a_worker(
    temporal_client: Client, settings: Settings, workspace: Path, queue: str
) -> None:
    options = Options(workspace=str(workspace))
    started = await runs.start(temporal_client, {"steps": [WRITE]}, options=options, queue=queue)
    await temporal_client.get_workflow_handle(started.workflow_id).terminate("enough")
    assert await end_records.run_of_ended(temporal_client, started.plan_id) is None
    with pytest.raises(NoWorker):
        await runs.show(temporal_client, started.plan_id)


async def test_where_the_record_cannot_be_read_a_worker_is_asked(
    temporal_client: Client, settings: Settings, workspace: Path, queue: str, tmp_path: Path
) -> None:
    long = {**WRITE, "args": {"path": "a.txt", "content": "hello " * 10_000}}
    plan = await _ended(temporal_client, settings, workspace, queue, [long], "completed")
    assert await end_records.run_of_ended(temporal_client, plan) is not None
    (tmp_path / "file").write_text("no directory")
    config = temporal_client.config()
    config["data_converter"] = converter(LocalDirectory(tmp_path / "file"))
    elsewhere = Client(**config)
    assert await end_records.run_of_ended(elsewhere, plan) is None
    assert await end_records.suffices(elsewhere, plan, "text"), "what is in history can be read everywhere"
    shown = await runs.text(elsewhere, plan, 100, detailed=True)
    assert "Progress: 1/1 (100.0%)" in shown, "without its Run, what the record has is shown, and no worker is needed"
    async with build(temporal_client, settings, load_tools(()), indexed=False):
        assert (await runs.show(elsewhere, plan)).status == "completed"


async def test_a_plan_that_ended_before_memos_named_the_record_is_read_from_its_history(
    temporal_client: Client, settings: Settings, workspace: Path, queue: str, state_dir: Path
) -> None:
    """Where its storage takes nothing, a plan ends as plans of older versions did: with no entry in the memo."""
    (state_dir / "values").write_text("no directory")
    config = temporal_client.config()
    config["data_converter"] = pydantic_data_converter
    plain = Client(**config)
    plan = await _ended(plain, settings, workspace, queue, [WRITE, READ], "completed")
    description = await temporal_client.get_workflow_handle(f"plan-{plan}").describe()
    assert END_RECORD not in await description.memo()
    assert await end_records.in_memo(temporal_client, description) is None
    kept = await end_records.run_of_ended(temporal_client, plan)
    assert kept is not None
    assert kept.status.value == "completed"


async def test_a_record_that_a_crash_of_the_machine_damaged_is_read_from_its_history(
    temporal_client: Client, settings: Settings, workspace: Path, queue: str
) -> None:
    """Its copy is not synced to disk: such a crash may leave an empty file."""
    plan = await _ended(temporal_client, settings, workspace, queue, [WRITE, READ], "completed")
    description = await temporal_client.get_workflow_handle(f"plan-{plan}").describe()
    assert await end_records.in_memo(temporal_client, description) is not None
    claim = await description.memo_value(END_RECORD, type_hint=LargeValue)
    storage = temporal_client.data_converter.external_storage
    assert storage is not None
    driver = storage.drivers[0]
    assert isinstance(driver, LocalDirectory)
    driver.path(claim.claim["sha256"]).write_bytes(b"")
    assert await end_records.in_memo(temporal_client, description) is None
    assert await end_records.run_of_ended(temporal_client, plan) is not None
    assert (await runs.show(temporal_client, plan)).status == "completed"


async def test_a_plan_that_runs_is_asked_itself(
    temporal_client: Client, settings: Settings, workspace: Path, queue: str
) -> None:
    options = Options(workspace=str(workspace))
    async with build(temporal_client, settings, load_tools(()), indexed=False):
        started = await runs.start(temporal_client, {"steps": [WRITE, GATE]}, options=options, queue=queue)
        await _waits(temporal_client, started.plan_id)
        assert await end_records.run_of_ended(temporal_client, started.plan_id) is None
        await runs.cancel(temporal_client, started.plan_id)
        await runs.wait(temporal_client, started.plan_id)
        assert (await runs.show(temporal_client, started.plan_id)).status == "cancelled"


async def _ended(client: Client, settings: Settings, workspace: Path, queue: str, steps: list[Any], status: str) -> str:
    """A plan that ended while a worker was there; none is left."""
    async with build(client, settings, load_tools(()), indexed=False):
        started = await runs.start(client, {"steps": steps}, options=Options(workspace=str(workspace)), queue=queue)
        if status == "cancelled":
            await _waits(client, started.plan_id)
            await runs.cancel(client, started.plan_id)
        assert (await runs.wait(client, started.plan_id)).status.value == status
    return started.plan_id


async def _without_claim(client: Client, plan: str) -> EndRecord:
    """The record in the plan's history; the one that is stored does not name its own place."""
    found = await end_records.in_history(client, f"plan-{plan}")
    assert found is not None
    assert found.claim is not None
    return found.model_copy(update={"claim": None})


def _undated(answer: Any) -> str:
    """Without times: a replay may date a plan's beginning by the few milliseconds differently that its check took."""
    text = json.dumps(answer, sort_keys=True)
    return re.sub(r'\d{4}-\d\d-\d\dT[\d:.]+(Z|\+00:00)|"duration": [\d.]+', "TIME", text)


async def _waits(client: Client, plan: str) -> None:
    async def asked() -> bool:
        return bool((await runs.show(client, plan)).pending)

    await until(asked, "the plan asks")
