"""A worker dies, a query waits for it, and meanwhile the plan gets on: whoever asked sees it, and decides at once.

The next worker answers the query from events whose workflow task has not begun. What it does when the task begins must
be what a replay does, which has the events before the answer and those after it at once.
"""

from __future__ import annotations

import asyncio

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner

from plansurvive.features.workflow_types import WORKFLOWS
from tests.chaos.conftest import Chaos
from tests.kit.driving import Started, step, terminated
from tests.nightly import only_nightly

ROUND_TRIPS = 30
"""Requests after which one that was sent before them has reached the server."""


async def _cut_in_two(plan: Started) -> bool:
    """Whether a query has ended the workflow task of the plan's check just when that had its result."""
    await asyncio.gather(*(plan.view() for _ in range(3)), return_exceptions=True)
    kinds = [event.event_type for event in await plan.events()]
    check = kinds.index(EventType.EVENT_TYPE_MARKER_RECORDED)
    return kinds[check + 1] == EventType.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED


@pytest.mark.parametrize("is_cut", [only_nightly(False), only_nightly(True)], ids=["any", "its check cut in two"])
async def test_a_plan_that_was_queried_ahead_of_its_task_replays(chaos: Chaos, is_cut: bool) -> None:
    (chaos.plans.workspace / "a.txt").touch()
    steps = [
        {"id": "go", "tool": "wait_for", "args": {"event": "go"}},
        {"id": "gone", "tool": "delete_file", "args": {"path": "a.txt"}, "dependsOn": ["go"]},
    ]
    await chaos.worker.up()
    plan = await chaos.plans.start(steps)
    while is_cut and not await _cut_in_two(plan):
        await terminated(plan.client, plan.id)
        plan = await chaos.plans.start(steps)
    await plan.until_status("go", "ready")
    chaos.worker.kill()
    await chaos.worker.up()
    asked = asyncio.create_task(plan.view())  # it is put to the dead worker first
    for _ in range(ROUND_TRIPS):
        await plan.handle.describe()
    await plan.signal("event", {"name": "go"})
    seen = await asked
    await plan.approve("gone", by="ann")
    assert (await plan.ended())["status"] == "completed"
    (history,) = await plan.histories()
    assert step(seen, "gone")["status"] == "ready", "the query was answered from events without a task"
    replayer = Replayer(
        workflows=WORKFLOWS, data_converter=pydantic_data_converter, workflow_runner=UnsandboxedWorkflowRunner()
    )
    assert (await replayer.replay_workflow(history, raise_on_replay_failure=False)).replay_failure is None
