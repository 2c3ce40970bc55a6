"""What Temporal's own UI shows of a plan."""

from __future__ import annotations

from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import WorkflowFailureError
from temporalio.converter import DataConverter

from tests.kit.driving import Plans, work


@pytest.mark.on_server("what markers say")
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


@pytest.mark.crosses_runs
async def test_current_details_show_the_plan_as_a_list_at_any_moment(plans: Plans) -> None:
    plan = await plans.start([work("a"), work("gate", "a", requiresApproval=True, description="Wipe *all*")], title="T")
    await plan.until_asked("gate")
    details = await _details(plan.handle)
    assert details.startswith("**T** · running · 1 completed, 1 awaiting approval")
    assert "- [✓] `a` work · completed" in details
    assert r"- [?] `gate` Wipe \*all\* · awaiting approval" in details
    await plan.approve("gate")
    await plan.ended()
    assert (await _details(plan.handle)).startswith("**T** · completed · 2 completed")


@pytest.mark.modes("plain")
async def test_the_ui_can_look_at_a_plan_that_was_refused_as_malformed(plans: Plans) -> None:
    name = f"plan-bad-{plans.queue}"
    handle = await plans.client.start_workflow("PlanWorkflow", {"plan": 1}, id=name, task_queue=plans.queue)
    with pytest.raises(WorkflowFailureError):
        await handle.result()
    assert not await _details(handle)


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


async def _metadata(handle: Any) -> Any:
    return await handle.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)


async def _details(handle: Any) -> str:
    return str((await _metadata(handle)).current_details)
