"""When something happened to a plan: Temporal's history, long-polled. Adds nothing to it, and needs no worker.

A burst of events counts as one change, at most ten changes a second are told, each when a workflow task has ended. It
goes on with the next run when the workflow continues as new, survives a server that is away for a while, and ends when
the plan has ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

from temporalio.api.enums.v1 import EventType
from temporalio.client import Client
from temporalio.service import RPCError

from client.ids import workflow_id
from client.rpc import LOST, describe, translated

AT_MOST_EVERY = 0.1
"""Seconds between two changes."""
RETRY_AFTER = 0.5, 5.0
"""Seconds before the first and before every later attempt to reach a server that is away."""

_TELLING = frozenset({
    EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW,
})  # fmt: skip
"""A run's state changes in a workflow task and at no other moment."""


async def changes(client: Client, plan: str, say: Callable[[str], None] = lambda _: None) -> AsyncIterator[None]:
    """Once now, then whenever the plan has changed, and once more when it has ended.

    Raises PlanNotFound. `say` is told when the server is away.
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
    """Let a burst pass; what came meanwhile is told when the next comes too, if that is soon.

    Right after a workflow task is the best moment to ask a plan. In the middle of one a question disturbs: the check of
    a plan and its record are made within a workflow task, which is cut in two to answer first: three events more.
    """
    await asyncio.sleep(AT_MOST_EVERY)
    if changed.is_set():
        changed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(AT_MOST_EVERY):
                await changed.wait()
        changed.set()


async def _tail(client: Client, plan: str, changed: asyncio.Event, say: Callable[[str], None]) -> None:
    """Set `changed` for every telling event, run after run, until the newest run is closed."""
    closed, away = "", False
    while True:
        try:
            run_id = (await client.get_workflow_handle(workflow_id(plan)).describe()).run_id
            if run_id == closed:
                return
            away = False
            await _tail_run(client, plan, run_id, changed)
            closed = run_id
        except RPCError as error:
            if error.status not in LOST:
                raise translated(error, plan) from error
            if not away:
                say("The server does not answer; trying again. The plan itself does not depend on this command.")
            await asyncio.sleep(RETRY_AFTER[away])
            away = True


async def _tail_run(client: Client, plan: str, run_id: str, changed: asyncio.Event) -> None:
    handle = client.get_workflow_handle(workflow_id(plan), run_id=run_id)
    async for event in handle.fetch_history_events(wait_new_event=True):
        if event.event_type in _TELLING:
            changed.set()
