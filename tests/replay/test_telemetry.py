"""Plans that began without telemetry are continued by workers with it: what carries the trace changes no command."""

from __future__ import annotations

import json

import pytest
from temporalio.client import WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from plansurvive.features.telemetry.propagation import CarriesTrace
from plansurvive.features.workflow_types import AgentWorkflow, PlanWorkflow
from plansurvive.runtime.workflow_runner import PASSED_THROUGH
from tests.replay.record import HISTORIES

CHOSEN = [path for path in sorted(HISTORIES.glob("*.json")) if "NotifyWorkflow" not in path.read_text()][::4]


@pytest.mark.slow
async def test_recorded_histories_replay_with_traces_on() -> None:
    replayer = Replayer(
        workflows=[PlanWorkflow, AgentWorkflow],
        interceptors=[CarriesTrace(lambda: lambda _: True)],
        workflow_runner=SandboxedWorkflowRunner(
            restrictions=SandboxRestrictions.default.with_passthrough_modules(*PASSED_THROUGH)
        ),
        data_converter=pydantic_data_converter,
    )
    assert len(CHOSEN) > 10
    for path in CHOSEN:
        data = json.loads(path.read_text())
        history = WorkflowHistory.from_json(data.pop("workflowId"), data)
        result = await replayer.replay_workflow(history, raise_on_replay_failure=False)
        assert result.replay_failure is None, path.name
