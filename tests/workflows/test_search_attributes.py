"""How lists and searches of Temporal find plans, also where a server knows few of our search attributes or none."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter

from plansurvive.client import runs
from plansurvive.client.doctor import examine
from plansurvive.plans.run import Options
from plansurvive.runtime import daemon
from plansurvive.runtime.search_attributes import TOLD, known
from plansurvive.runtime.server import HOST, SEARCH_ATTRIBUTES, Server, free_ports
from tests.kit.driving import Plans, Started, count, statuses, work
from tests.kit.waiting import connected, until
from tests.workflows.conftest import MakeWorker

pytestmark = [pytest.mark.oldest_server, pytest.mark.on_server("lists")]


@pytest.mark.crosses_runs
async def test_plans_are_found_by_status_pending_step_and_title(plans: Plans) -> None:
    plan = await plans.start([work("gate", requiresApproval=True)], title=f"Quarterly report {plans.queue}")
    await plan.until_asked("gate")
    queries = [
        f"PlanStatus = 'running' AND PlanPending = 'gate' AND WorkflowId = '{plan.id}' AND ExecutionStatus = 'Running'",
        f"PlanTitle = '{plans.queue}' AND ExecutionStatus = 'Running'",
    ]
    for query in queries:
        await until(partial(count, plans.client, query), query)
    await plan.approve("gate")
    await plan.ended()
    done = f"PlanStatus = 'completed' AND WorkflowId = '{plan.id}' AND PlanPending IS NULL"
    await until(lambda: count(plans.client, done), done)


@pytest.mark.modes("plain")
async def test_a_plan_costs_no_more_events_than_check_record_memo_and_one_update_of_the_index(plans: Plans) -> None:
    plan = {"title": "First", "steps": [work("a"), work("b", "a")]}
    started = await runs.start(
        plans.client, plan, options=Options(workspace=str(plans.workspace)), plan_id=plans.queue, queue=plans.queue
    )
    await runs.wait(plans.client, started.plan_id)
    names = [EventType.Name(event.event_type) for event in await Started(plans.client, started.workflow_id).events()]
    others = [name for name in names if "_TASK_" not in name and "_WORKFLOW_EXECUTION_" not in name]
    assert [name.removeprefix("EVENT_TYPE_") for name in others] == [
        "MARKER_RECORDED",
        "MARKER_RECORDED",
        "WORKFLOW_PROPERTIES_MODIFIED",
        "UPSERT_WORKFLOW_SEARCH_ATTRIBUTES",
    ]


RUNNING = "ExecutionStatus = 'Running'"


@asynccontextmanager
async def knowing(temporal_binary: Path, tmp_path: Path, *names: str) -> AsyncIterator[Client]:
    """A client of a server on which only these of our search attributes are registered."""
    port, _ = free_ports(0, 0)
    command = [str(temporal_binary), "server", "start-dev", "--headless", "--ip", HOST, "--port", str(port)]
    for name in names:
        command += ["--search-attribute", f"{name}={SEARCH_ATTRIBUTES[name]}"]
    pid, began = daemon.start([*command, "--log-level", "error"], tmp_path / "server.log", os.environ)
    server = Server(pid=pid, began=began, address=f"{HOST}:{port}", ui="")
    try:
        await until(server.accepts, "the server listens")
        yield await connected(server.address, data_converter=pydantic_data_converter)
    finally:
        await server.stop(grace=0)


@pytest.mark.modes("plain")
async def test_a_server_without_our_search_attributes_runs_plans_all_the_same(
    temporal_binary: Path, tmp_path: Path, make_worker: MakeWorker, workspace: Path, queue: str
) -> None:
    async with knowing(temporal_binary, tmp_path) as client, make_worker(indexed=False, client=client):
        view = await Plans(client, queue, workspace).run([work("a"), work("b", "a")], title="Unindexed")
    assert statuses(view) == {"a": "completed", "b": "completed"}


@pytest.mark.slow
@pytest.mark.modes("plain")
async def test_a_server_that_knows_some_search_attributes_indexes_by_these_and_no_waiting_plan_is_missed(
    temporal_binary: Path, tmp_path: Path, make_worker: MakeWorker, workspace: Path, queue: str, environ: dict[str, str]
) -> None:
    beside = [work(f"s{n}", *([f"s{n - 1}"] if n else [])) for n in range(8)]
    plan = {"title": "Half indexed", "steps": [work("gate", requiresApproval=True), work("after", "gate"), *beside]}
    options = Options(workspace=str(workspace), history_limit=10)  # it goes on as new while it asks
    async with knowing(temporal_binary, tmp_path, "PlanStatus", "PlanTitle") as client:
        assert await known(client) == {"PlanStatus", "PlanTitle"}
        told = await examine(environ | {"TEMPORAL_ADDRESS": client.service_client.config.target_host})
        assert "does not know PlanPending, PlanResumes;" in next(each.text for each in told if each.subject == "search")
        async with make_worker(indexed=await known(client) >= TOLD, client=client):
            started = await runs.start(client, plan, options=options, plan_id="half", queue=queue)
            await Started(client, started.workflow_id).until_asked("gate")
            await until(partial(_pending, client), "it is found by who looks for what waits")
            await Started(client, started.workflow_id).until_status("s7", "completed")
            await until(partial(count, client, f"{RUNNING} AND PlanStatus = 'asking'"), "the index says what it can")
            await runs.approve(client, "half", runs.Choice(step_id="gate"))
            await runs.wait(client, "half")
        await until(partial(count, client, "PlanStatus = 'completed' AND PlanTitle = 'indexed'"), "found by both")


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.modes("plain")
async def test_a_plan_is_started_with_those_search_attributes_that_the_server_knows(
    temporal_binary: Path, tmp_path: Path, make_worker: MakeWorker, workspace: Path, queue: str
) -> None:
    async with knowing(temporal_binary, tmp_path, "PlanStatus", "PlanPending", "PlanTitle") as client:
        assert await known(client) == TOLD
        async with make_worker(client=client):
            options = Options(workspace=str(workspace))
            refused = {"title": "Again", "steps": [{"id": "bad", "tool": "refuse", "args": {"code": "CONFLICT"}}]}
            await runs.start(client, refused, options=options, plan_id="old", queue=queue)
            await runs.wait(client, "old")
            later = await runs.resume(client, "old")
            await runs.wait(client, later.plan_id)
        own = f"WorkflowId = '{later.workflow_id}'"
        await until(partial(count, client, f"{own} AND PlanStatus = 'partial' AND PlanTitle = 'again'"), "found")


async def _pending(client: Client) -> list[str]:
    return [item.step_id async for item in runs.pending(client)]
