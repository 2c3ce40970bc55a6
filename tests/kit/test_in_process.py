"""The in-process server has what a real one would catch: code that is not deterministic, activities that are lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from itertools import count
from typing import ClassVar

import pytest
from temporalio import activity, workflow
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.common import RetryPolicy
from temporalio.converter import DataConverter
from temporalio.exceptions import ActivityError, TimeoutError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from tests.kit.in_process import Server
from tests.kit.waiting import until

LIMIT = timedelta(seconds=60)


@workflow.defn(name="Chancy", sandboxed=False)
class Chancy:
    """Sleeps in its first run, and starts an activity when it is replayed."""

    runs: ClassVar[count[int]] = count()

    @workflow.run
    async def run(self) -> None:
        """Run."""
        if next(self.runs) % 2:
            await workflow.execute_activity("tick", start_to_close_timeout=LIMIT)
        await workflow.sleep(0.001)
        await workflow.sleep(0.001)


@workflow.defn(name="Lost", sandboxed=False)
class Lost:
    """Starts an activity that sends no heartbeat the first time."""

    @workflow.run
    async def run(self, attempts: int) -> int:
        """Run."""
        attempt: int = await workflow.execute_activity(
            "silent", start_to_close_timeout=LIMIT, heartbeat_timeout=timedelta(seconds=0.05),
            retry_policy=RetryPolicy(initial_interval=timedelta(hours=1), maximum_attempts=attempts),
        )  # fmt: skip
        return attempt


@activity.defn(name="tick")
async def tick() -> None:
    """Do nothing."""


@activity.defn(name="silent")
async def silent() -> int:
    """Send no heartbeat until it is cancelled, the first time."""
    if activity.info().attempt == 1:
        await asyncio.sleep(LIMIT.total_seconds())
    return activity.info().attempt


@asynccontextmanager
async def working(*, cached: int = 100) -> AsyncIterator[Client]:
    """A client, and a worker of these workflows and activities, which ends without grace."""
    server = Server()
    client = server.client(DataConverter.default)
    worker = Worker(
        client, task_queue="q", workflows=[Chancy, Lost], activities=[tick, silent], max_cached_workflows=cached,
        workflow_runner=UnsandboxedWorkflowRunner(),
    )  # fmt: skip
    async with worker:
        yield client
    server.stop()


async def _failures(handle: WorkflowHandle[object, object]) -> list[str]:
    failed = EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED
    events = [event async for event in handle.fetch_history_events() if event.event_type == failed]
    return [event.workflow_task_failed_event_attributes.failure.message for event in events]


async def test_a_replay_that_gives_other_commands_fails_the_workflow_task() -> None:
    async with working(cached=0) as client:
        handle = await client.start_workflow("Chancy", id="chancy", task_queue="q")
        failures = await until(lambda: _failures(handle), "a workflow task fails")
        assert "Nondeterminism" in failures[0]
        await handle.terminate()


async def test_an_activity_without_a_heartbeat_is_tried_again_after_a_pause_that_nobody_waits_for() -> None:
    async with working() as client:
        assert await client.execute_workflow("Lost", 2, id="lost", task_queue="q") == 2


async def test_an_activity_without_a_heartbeat_fails_when_its_attempts_are_used_up() -> None:
    async with working() as client:
        with pytest.raises(WorkflowFailureError) as failed:
            await client.execute_workflow("Lost", 1, id="lost", task_queue="q")
    assert isinstance(failed.value.cause, ActivityError)
    assert isinstance(failed.value.cause.cause, TimeoutError)
