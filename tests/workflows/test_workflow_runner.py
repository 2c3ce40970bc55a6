"""Our workflow runner's difference from the SDK's: a workflow task may take longer than two seconds."""

from __future__ import annotations

import time

import pytest
from temporalio import workflow
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client

from runtime.settings import Settings
from worker import build


@workflow.defn(name="Thinker", sandboxed=False)
class Thinker:
    """Blocks the workflow's thread for a number of seconds without yielding."""

    @workflow.run
    async def run(self, seconds: float) -> str:
        """Think."""
        think(seconds)
        return "thought"


def think(seconds: float) -> None:
    """Block the workflow's thread."""
    time.sleep(seconds)


@pytest.mark.slow
@pytest.mark.modes("plain")
async def test_a_workflow_that_thinks_for_long_is_not_taken_for_dead(
    temporal_client: Client, settings: Settings, queue: str
) -> None:
    async with build(temporal_client, settings, {}, indexed=True, workflows=[Thinker]):
        handle = await temporal_client.start_workflow("Thinker", 3.0, id=f"thinker-{queue}", task_queue=queue)
        assert await handle.result() == "thought"
    events = [event.event_type async for event in handle.fetch_history_events()]
    assert EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED not in events
    assert EventType.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT not in events
