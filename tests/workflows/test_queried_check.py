"""A query while a plan is being checked can split its first workflow task; a replay sees both parts as one."""

from __future__ import annotations

import json

import pytest
from temporalio.client import WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner

from plansurvive.features.workflow_types import WORKFLOWS
from tests.kit.driving import Plans, work
from tests.replay.queried import split
from tests.workflows.test_bounded_work import DOUBLED, INPUTS

pytestmark = pytest.mark.modes("plain")


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.on_server("queries while a workflow task is answered")
async def test_a_costly_plan_that_was_queried_while_it_was_checked_replays(plans: Plans) -> None:
    steps = [work(f"s{n}", when=f"inputs.x{DOUBLED}|length(to_string(@)) > `{n}`") for n in range(5)]
    started = await plans.start(steps, inputs=INPUTS)
    await started.ended()
    (history,) = await started.histories()
    replayer = Replayer(
        workflows=WORKFLOWS, data_converter=pydantic_data_converter, workflow_runner=UnsandboxedWorkflowRunner()
    )
    events = split(json.loads(history.to_json())["events"])
    assert events
    for each in (history, WorkflowHistory.from_json(history.workflow_id, {"events": events})):
        assert (await replayer.replay_workflow(each, raise_on_replay_failure=False)).replay_failure is None
