"""A workflow of one step, and a worker for it, to see what a real server makes of a tool's attempts."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.client import Client, WorkflowHandle
from temporalio.common import RetryPolicy
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from plansurvive.activities.attempt.environment import ToolEnvironment
from plansurvive.activities.attempt.run import tool_activity
from plansurvive.activities.tools.tool import Tool
from plansurvive.activities.workspace.effect_log import Effects
from plansurvive.features.limits.in_workflow import LimitsWorkflow
from plansurvive.plans.activity_io import Call, Return
from plansurvive.runtime.value_store import ValueStore
from tests.kit.driving import CEILING


@workflow.defn
class OneStep:
    """Calls one tool, as PlanWorkflow does."""

    @workflow.run
    async def run(self, tool: str, call: Call, heartbeat: float, attempts: int = 0) -> Return:
        """The tool's answer. `attempts`: how many the server allows; 0: any number."""
        answer: Return = await workflow.execute_activity(
            tool,
            call,
            result_type=Return,
            start_to_close_timeout=timedelta(seconds=120),
            heartbeat_timeout=timedelta(seconds=heartbeat),
            retry_policy=RetryPolicy(initial_interval=timedelta(milliseconds=100), maximum_attempts=attempts),
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        )
        return answer


def worker(
    client: Client, queue: str, tools: list[Tool], values: ValueStore, effects: Effects, grace: float = 5.0,
    site: ToolEnvironment | None = None, eager: bool = True,
) -> Worker:  # fmt: skip
    """A worker with these tools, and what keeps their limits. `eager`: it takes the step without a dispatch."""
    return Worker(
        client,
        task_queue=queue,
        workflows=[OneStep, LimitsWorkflow],
        activities=[tool_activity(tool, values, effects, site) for tool in tools],
        workflow_runner=UnsandboxedWorkflowRunner(),
        graceful_shutdown_timeout=timedelta(seconds=grace),
        disable_eager_activity_execution=not eager,
        max_heartbeat_throttle_interval=timedelta(seconds=1),
    )


async def start(
    client: Client, queue: str, tool: str, call: Call, heartbeat: float = 5.0, attempts: int = 0
) -> WorkflowHandle[Any, Return]:
    """The workflow, begun."""
    return await client.start_workflow(
        OneStep.run,
        args=[tool, call, heartbeat, attempts],
        id=f"one-{uuid.uuid4().hex}",
        task_queue=queue,
        execution_timeout=CEILING,
    )
