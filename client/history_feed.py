"""Notifies of changes to a plan by long-polling its Temporal history. Adds no events to it and needs no worker.

Bursts of events are merged: at most ten notifications a second, each after a workflow task has completed. The feed
follows continue-as-new, retries while the server is unavailable, and ends when the plan has ended.

The history's tail and a query add no event, however many watch, and work while no worker is up.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

from temporalio.api.enums.v1 import EventType
from temporalio.client import Client
from temporalio.service import RPCError

from plansurvive.client.ids import workflow_id
from plansurvive.client.rpc import LOST, describe, translated

AT_MOST_EVERY = 0.1
"""Minimum seconds between two notifications."""
RETRY_AFTER = 0.5, 5.0
"""Seconds before the first retry, and before every later one, while the server is unavailable."""

_RELEVANT = frozenset({
    EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW,
})  # fmt: skip
"""The events after which the state may differ: it changes only in workflow tasks and when the workflow closes."""


async def changes(client: Client, plan: str, say: Callable[[str], None] = lambda _: None) -> AsyncIterator[None]:
    """Yields once immediately, then after every change to the plan, and once more when it has ended.

    `say` is called when the server becomes unavailable. Raises PlanNotFound.
    """
    changed = asyncio.Event()
    tail = asyncio.create_task(_tail(client, plan, changed, say))
    tail.add_done_callback(lambda _: changed.set())
    try:
        await describe(client, plan)
        yield None
        while not tail.done():
            await changed.wait()
            changed.clear()
            yield None
            if not tail.done():
                await _pause(changed)
        await tail
        if changed.is_set():
            yield None
    finally:
        tail.cancel()
        await asyncio.gather(tail, return_exceptions=True)


async def _pause(changed: asyncio.Event) -> None:
    """Wait for a burst to pass. If there was another change meanwhile, wait a little longer for the one after it.

    The best moment to query a plan is right after a workflow task. A query during one that runs a local activity (the
    check of the plan, its end record) makes the SDK split the task to answer first, which adds three events.
    """
    await asyncio.sleep(AT_MOST_EVERY)
    if changed.is_set():
        changed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(AT_MOST_EVERY):
                await changed.wait()
        changed.set()


async def _tail(client: Client, plan: str, changed: asyncio.Event, say: Callable[[str], None]) -> None:
    """Set `changed` for every relevant event, run after run (continue-as-new), until the newest run is closed."""
    closed, away = "", False
    while True:
        try:
            run_id = (await client.get_workflow_handle(workflow_id(plan)).describe()).run_id
            if run_id == closed:  # no newer run has followed it
                return
            away = False
            await _tail_run(client, plan, run_id, changed)
            closed = run_id
        except RPCError as error:
            if error.status not in LOST:
                raise translated(error, plan) from error
            if not away:
                say(
                    "The Temporal server does not answer; retrying. The plan does not depend on this command; `plan"
                    " doctor` says what this machine lacks."
                )
            await asyncio.sleep(RETRY_AFTER[away])
            away = True


async def _tail_run(client: Client, plan: str, run_id: str, changed: asyncio.Event) -> None:
    handle = client.get_workflow_handle(workflow_id(plan), run_id=run_id)
    async for event in handle.fetch_history_events(wait_new_event=True):
        if event.event_type in _RELEVANT:
            changed.set()
