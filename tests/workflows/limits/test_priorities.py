"""The priority and the fairness key of a plan reach everything below it, over continue-as-new as well."""

from __future__ import annotations

import pytest
from temporalio.client import Client

from plansurvive.client import runs
from plansurvive.plans.model.shares import Fairness
from plansurvive.plans.run import Options
from tests.kit.driving import Plans, Started, work

pytestmark = [pytest.mark.modes("plain"), pytest.mark.on_server("rates in real time, and several clients")]


async def test_steps_and_child_plans_have_the_priority_and_the_key_of_their_plan(
    plans: Plans, temporal_client: Client
) -> None:
    child = {"id": "child", "tool": "plan", "args": {"steps": [work("inside")]}, "dependsOn": ["a"]}
    options = Options(workspace=str(plans.workspace), priority=2, fairness=Fairness(key="team", weight=2.0), by="ann")
    started = await runs.start(temporal_client, {"steps": [work("a"), child]}, options=options, queue=plans.queue)
    plan = Started(temporal_client, started.workflow_id)
    view = await plan.ended()
    assert view["status"] == "completed"
    found = [(await plan.handle.describe()).raw_description.workflow_execution_info.priority]
    for event in await plan.events():
        if event.HasField("child_workflow_execution_started_event_attributes"):
            name = event.child_workflow_execution_started_event_attributes.workflow_execution.workflow_id
            below = await Started(temporal_client, name).handle.describe()
            found.append(below.raw_description.workflow_execution_info.priority)
    assert [(each.priority_key, each.fairness_key, each.fairness_weight) for each in found] == [(2, "team", 2.0)] * 2
