"""A query while a plan is being checked can split its first workflow task; a replay sees both parts as one.

The worker answers the query before the workflow has gone on from the check, which is a local activity, and asks for
another workflow task for the rest. On replay the workflow goes on at once, so no patch of that second task is known
yet: whatever a plan does there must not depend on `workflow.patched`.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from temporalio.client import WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner

from tests.driving import Plans, work
from tests.workflows.test_bounded_work import DOUBLED, INPUTS
from workflows.registration.workflow_types import WORKFLOWS

pytestmark = pytest.mark.modes("plain")
TASK = 3
"""Events of a workflow task: scheduled, started, completed. The first one has the numbers 2 to 4, the check 5."""


def split(history: WorkflowHistory) -> WorkflowHistory:
    """The history as it would be if the first workflow task had ended with the check's result, because of a query."""
    events = json.loads(history.to_json())["events"]
    assert "markerRecordedEventAttributes" in events[4]
    second = [_moved(json.loads(json.dumps(event)), TASK + 1, 0) for event in events[1:4]]
    rest = [_moved(event, TASK, 4) for event in events[5:]]
    return WorkflowHistory.from_json(history.workflow_id, json.dumps({"events": [*events[:5], *second, *rest]}))


def _moved(value: Any, by: int, after: int) -> Any:
    """Event numbers of at least `after`, in an event, made greater."""
    if isinstance(value, list):
        return [_moved(each, by, after) for each in value]
    if not isinstance(value, dict):
        return value
    moved = {name: _moved(each, by, after) for name, each in value.items()}
    for name, each in value.items():
        if name.lower().endswith("eventid") and int(each) >= after:
            moved[name] = str(int(each) + by)
    return moved


@pytest.mark.slow
async def test_a_costly_plan_that_was_queried_while_it_was_checked_replays(plans: Plans) -> None:
    steps = [work(f"s{n}", when=f"inputs.x{DOUBLED}|length(to_string(@)) > `{n}`") for n in range(5)]
    started = await plans.start(steps, inputs=INPUTS)
    await started.ended()
    (history,) = await started.histories()
    replayer = Replayer(
        workflows=WORKFLOWS, data_converter=pydantic_data_converter, workflow_runner=UnsandboxedWorkflowRunner()
    )
    for each in (history, split(history)):
        assert (await replayer.replay_workflow(each, raise_on_replay_failure=False)).replay_failure is None
