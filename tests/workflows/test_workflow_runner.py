"""Our workflow runner's differences from the SDK's: a workflow task may take longer than two seconds, and is never
interrupted."""

from __future__ import annotations

import time
import weakref
from typing import ClassVar

import pytest
from temporalio import workflow
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client

from plansurvive.runtime.settings import Settings
from plansurvive.worker import build


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


class Collected:
    """Something with a weak reference to it."""


@workflow.defn(name="Starved")
class Starved:
    """Is busy past the deadlock timeout in a callback of the garbage collector, the first time it runs."""

    runs: ClassVar[int] = 0
    ended: ClassVar[list[str]] = []

    @workflow.run
    async def run(self) -> str:
        Starved.runs += 1
        if Starved.runs == 1:
            value = Collected()
            reference = weakref.ref(value, busy)
            del value  # calls `busy`, which returns nothing to its caller, and raises nothing either
            del reference
        return "done"


def busy(_: object) -> None:
    """Compute for two seconds, in Python: an exception can reach it at every instruction."""
    Starved.ended.append("interrupted")
    until = time.monotonic() + 2.5
    while time.monotonic() < until:
        pass
    Starved.ended[-1] = "whole"


@pytest.mark.modes("plain")
async def test_a_workflow_that_takes_too_long_is_not_interrupted(
    temporal_client: Client, settings: Settings, queue: str
) -> None:
    Starved.runs, Starved.ended = 0, []
    worker = build(temporal_client, settings, {}, indexed=True, workflows=[Starved])
    vars(vars(worker)["_workflow_worker"])["_deadlock_timeout_seconds"] = 1
    async with worker:
        handle = await temporal_client.start_workflow("Starved", id=f"starved-{queue}", task_queue=queue)
        assert await handle.result() == "done"
    assert Starved.ended == ["whole"]
    assert Starved.runs == 2  # its task failed, and was done again from its history
    events = [event.event_type async for event in handle.fetch_history_events()]
    assert events.count(EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED) == 1
