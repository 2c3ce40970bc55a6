"""A workflow of ours in this process, driven by hand: jobs in, commands out, as a worker's core does it.

The SDK offers this to runners of workflows (`WorkflowRunner`, `WorkflowInstance`). The workflow's code is the worker's,
unsandboxed: it learns about the world from jobs alone, and no command that it gives is carried out here.

Rejected: an ephemeral server with a worker whose tools answer from the record (a mistake in its wiring would call a
real tool), a run on the user's server (lists, notifications, locks), and the SDK's `Replayer`, which answers nothing
about other models.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.common.v1 import Payload, Payloads
from temporalio.bridge.proto.workflow_activation import (
    InitializeWorkflow,
    QueryWorkflow,
    RemoveFromCache,
    WorkflowActivation,
    WorkflowActivationJob,
)
from temporalio.common import Priority, TypedSearchAttributes
from temporalio.converter import DataConverter
from temporalio.worker import UnsandboxedWorkflowRunner, WorkflowInstance, WorkflowInstanceDetails
from temporalio.workflow import Info

from plansurvive.apps.evaluation.record import AGENT, PLAN, Record
from plansurvive.features.workflow_types import AgentWorkflow, PlanWorkflow
from plansurvive.plans.errors import PlanError

_TYPES: dict[str, type] = {AGENT: AgentWorkflow, PLAN: PlanWorkflow}
_DEFINITION = "__temporal_workflow_definition"
"""Where the SDK's decorator keeps what it made of a workflow class."""
_MAY_BE_LOCAL = "__temporal_assert_local_activity_valid"
"""What the SDK asks its worker before a local activity: whether it has one of that name."""
_SHORT = 3
"""Events of the history, as the workflow is told: it never becomes so long that the run continues as new."""


class PlayFailed(PlanError):
    """The workflow's code failed on what was recorded."""

    code = "REPLAY_FAILED"


class Instance:
    """One run of a recorded workflow, from its start."""

    def __init__(self, record: Record, converter: DataConverter) -> None:
        """Needs a running event loop."""
        self._record = record
        info = _info(record)
        details = WorkflowInstanceDetails(
            payload_converter_factory=converter.payload_converter_class,
            failure_converter_class=converter.failure_converter_class,
            interceptor_classes=[],
            defn=getattr(_TYPES[record.kind], _DEFINITION),
            info=info,
            randomness_seed=uuid.UUID(int=0).int,
            extern_functions={_MAY_BE_LOCAL: lambda _: None},
            disable_eager_activity_execution=True,
            worker_level_failure_exception_types=[],
            patch_activation_callback=None,
            last_completion_result=Payloads(),
            last_failure=None,
        )
        self._instance: WorkflowInstance = UnsandboxedWorkflowRunner().create_instance(details)

    async def start(self, now: datetime) -> list[Any]:
        """Start the workflow with the recorded arguments; returns its commands."""
        record = self._record
        job = InitializeWorkflow(
            workflow_type=record.kind,
            workflow_id=record.workflow_id,
            arguments=record.arguments,
            first_execution_run_id=record.run_id,
            attempt=1,
            start_time=_stamp(record.started),
        )
        return await self.activate([WorkflowActivationJob(initialize_workflow=job)], now)

    async def activate(self, jobs: Sequence[WorkflowActivationJob], now: datetime) -> list[Any]:
        """Give the workflow these jobs; returns its commands. Raises PlayFailed."""
        activation = WorkflowActivation(
            run_id=self._record.run_id,
            timestamp=_stamp(now),
            history_length=_SHORT,
            history_size_bytes=_SHORT,
            jobs=jobs,
        )
        done = await asyncio.to_thread(self._instance.activate, activation)
        if done.HasField("failed"):
            raise PlayFailed(
                f"the recorded run '{self._record.workflow_id}' cannot be played by this version:"
                f" {done.failed.failure.message}"
            )
        return list(done.successful.commands)

    async def query(self, name: str, now: datetime) -> Payload:
        """The answer to a query. Raises PlayFailed."""
        job = WorkflowActivationJob(query_workflow=QueryWorkflow(query_id="q", query_type=name))
        [command] = await self.activate([job], now)
        if not command.respond_to_query.HasField("succeeded"):
            raise PlayFailed(f"the replayed run does not answer: {command.respond_to_query.failed.message}")
        answer: Payload = command.respond_to_query.succeeded.response
        return answer

    async def close(self, now: datetime) -> None:
        """End what is left of the workflow's tasks."""
        await self.activate([WorkflowActivationJob(remove_from_cache=RemoveFromCache())], now)


def _info(record: Record) -> Info:
    return Info(
        attempt=1,
        continued_run_id=None,
        cron_schedule=None,
        execution_timeout=None,
        first_execution_run_id=record.run_id,
        headers={},
        namespace="replay",
        original_execution_run_id=record.run_id,
        parent=None,
        root=None,
        priority=Priority.default,
        raw_memo={},
        retry_policy=None,
        run_id=record.run_id,
        run_timeout=None,
        search_attributes={},
        start_time=record.started,
        task_queue=record.queue,
        task_timeout=timedelta(seconds=10),
        typed_search_attributes=TypedSearchAttributes.empty,
        workflow_id=record.workflow_id,
        workflow_start_time=record.started,
        workflow_type=record.kind,
    )


def _stamp(time: datetime) -> Timestamp:
    stamp = Timestamp()
    stamp.FromDatetime(time)
    return stamp
