"""No plan depends on `workflow.patched` in its first turn: it could not be replayed if it was queried while checked."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from temporalio.client import WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner

from plansurvive.features.workflow_types import WORKFLOWS
from tests.replay.queried import split
from tests.replay.replayer import HISTORIES, Patient


def histories() -> dict[str, WorkflowHistory]:
    """The recorded histories, each as if its plan had been queried while it was checked.

    Without those that continued as new: when they do depends on the number of events, and there are more.
    """
    found = {}
    for path in sorted(HISTORIES.glob("*.json")):
        history: dict[str, Any] = json.loads(path.read_text())
        events = split(history["events"])
        if events and not events[-1]["eventType"].endswith("CONTINUED_AS_NEW"):
            found[path.stem] = WorkflowHistory.from_json(history["workflowId"], {"events": events})
    return found


@pytest.mark.slow
async def test_every_recorded_plan_replays_as_if_it_had_been_queried_while_it_was_checked() -> None:
    replayer = Replayer(
        workflows=WORKFLOWS,
        workflow_task_executor=Patient(),
        workflow_runner=UnsandboxedWorkflowRunner(),
        data_converter=pydantic_data_converter,
    )
    found = histories()
    assert len(found) > 50
    failed = {}

    async def each() -> AsyncIterator[WorkflowHistory]:
        for history in found.values():
            yield history

    async with replayer.workflow_replay_iterator(each()) as results:
        names = iter(found)
        async for result in results:
            if result.replay_failure is not None:
                failed[next(names)] = str(result.replay_failure)
            else:
                next(names)
    assert not failed
