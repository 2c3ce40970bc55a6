"""What Temporal's own UI and lists show of a plan, and a server that cannot index it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from temporalio.api.enums.v1 import EventType
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.converter import DataConverter

from client import detached
from client.server import HOST, Server, free_ports
from tests.driving import Plans, statuses, work
from tests.waiting import connected, until
from tests.workflows.conftest import MakeWorker


async def test_steps_and_timers_carry_their_descriptions(plans: Plans) -> None:
    nap = {"id": "nap", "tool": "sleep", "args": {"seconds": 0.1}}
    plan = await plans.start([work("a", description="Count the rows"), work("b", "a"), nap])
    await plan.ended()
    wanted = (EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED, EventType.EVENT_TYPE_MARKER_RECORDED)
    shown = [
        DataConverter.default.payload_converter.from_payload(event.user_metadata.summary)
        for event in await plan.events()
        if event.event_type in wanted
    ]
    assert shown[0] == "check 3 steps against the worker's tools"
    assert sorted(shown[1:3]) == ["a · Count the rows", "b"]
    timers = [event for event in await plan.events() if event.event_type == EventType.EVENT_TYPE_TIMER_STARTED]
    assert all(event.user_metadata.summary.data for event in timers)


@pytest.mark.modes("plain", "short", "uncached")
async def test_current_details_show_the_plan_as_a_list_at_any_moment(plans: Plans) -> None:
    plan = await plans.start([work("a"), work("gate", "a", requiresApproval=True, description="Wipe *all*")], title="T")
    await plan.until_asked("gate")
    details = await _details(plan.handle)
    assert details.startswith("**T** · running · 1 ready, 1 completed")
    assert "- [✓] `a` work · completed" in details
    assert r"- [?] `gate` Wipe \*all\* · ready · waits for approval" in details
    await plan.approve("gate")
    await plan.ended()
    assert (await _details(plan.handle)).startswith("**T** · completed · 2 completed")


async def test_plans_are_found_by_status_pending_step_and_title(plans: Plans) -> None:
    plan = await plans.start([work("gate", requiresApproval=True)], title=f"Quarterly report {plans.queue}")
    await plan.until_asked("gate")
    queries = [
        f"PlanStatus = 'running' AND PlanPending = 'gate' AND WorkflowId = '{plan.id}' AND ExecutionStatus = 'Running'",
        f"PlanTitle = '{plans.queue}' AND ExecutionStatus = 'Running'",
    ]
    for query in queries:
        await until(partial(_count, plans.client, query), query)
    await plan.approve("gate")
    await plan.ended()
    done = f"PlanStatus = 'completed' AND WorkflowId = '{plan.id}' AND PlanPending IS NULL"
    await until(lambda: _count(plans.client, done), done)


@pytest.mark.modes("plain")
async def test_the_ui_lists_the_signals_with_what_they_want(plans: Plans) -> None:
    plan = await plans.start([work("gate", requiresApproval=True)])
    await plan.until_asked("gate")
    definition = (await _metadata(plan.handle)).definition
    assert {each.name for each in definition.signal_definitions} >= {"approve", "deny", "pause", "unpause", "begin"}
    assert all(each.description for each in definition.signal_definitions if each.name)
    assert {each.name for each in definition.query_definitions} >= {"plan", "events", "text", "summary"}
    await plan.approve("gate")
    await plan.ended()


@pytest_asyncio.fixture
async def plain_client(temporal_binary: Path, tmp_path: Path) -> AsyncIterator[Client]:
    """A client of a server that does not know our search attributes."""
    port, _ = free_ports(0, 0)
    command = [str(temporal_binary), "server", "start-dev", "--headless", "--ip", HOST, "--port", str(port)]
    pid, began = detached.start([*command, "--log-level", "error"], tmp_path / "server.log", os.environ)
    server = Server(pid=pid, began=began, address=f"{HOST}:{port}", ui="")
    try:
        await until(server.accepts, "the server listens")
        yield await connected(server.address, data_converter=pydantic_data_converter)
    finally:
        await server.stop(grace=0)


@pytest.mark.modes("plain")
async def test_a_server_without_our_search_attributes_runs_plans_all_the_same(
    plain_client: Client, make_worker: MakeWorker, workspace: Path, queue: str
) -> None:
    plans = Plans(plain_client, queue, workspace)
    async with make_worker(indexed=False, client=plain_client):
        view = await plans.run([work("a"), work("b", "a")], title="Unindexed")
    assert statuses(view) == {"a": "completed", "b": "completed"}


async def _count(client: Client, query: str) -> int:
    return (await client.count_workflows(query)).count


async def _metadata(handle: Any) -> Any:
    return await handle.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)


async def _details(handle: Any) -> str:
    return str((await _metadata(handle)).current_details)
