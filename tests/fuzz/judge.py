"""Judges from outside, through the server, whether a workflow is stuck: its workflow task fails and is tried again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowHandle
from temporalio.service import RPCError

from tests.kit.waiting import until

STUCK = 3
"""Attempts of one workflow task: the first may be lost with a worker that is busy, no sound task needs a third.

A control, which expects them to fail, looks at the second already.
"""
AT_ONCE = 20
SETTLED = timedelta(seconds=5)
"""A workflow is judged once its activities have had that long: they wait for a worker or a retry."""
T = TypeVar("T")


@dataclass
class Verdict:
    """What became of many workflows."""

    refused: int = 0
    """Not taken by the server, or by the client."""
    ended: int = 0
    completed: int = 0
    """Of these, how many ran to their end: the inputs were more than rubbish."""
    open: int = 0
    """Waits for something, with no workflow task left to do."""
    stuck: list[Any] = field(default_factory=list)
    """The inputs of those that are stuck."""

    @property
    def total(self) -> int:
        return self.refused + self.ended + self.open + len(self.stuck)


async def state_of(handle: WorkflowHandle[Any, Any], attempts: int) -> str:
    """`completed`, `ended`, `stuck`, `open`, or empty while that cannot be told."""
    described = await handle.describe()
    if described.status is not WorkflowExecutionStatus.RUNNING:
        if described.status is WorkflowExecutionStatus.COMPLETED:
            return "completed"
        return "" if described.status is WorkflowExecutionStatus.CONTINUED_AS_NEW else "ended"
    task = described.raw_description.pending_workflow_task
    if task.attempt >= attempts:
        return "stuck"
    news = [
        max(each.last_started_time, each.scheduled_time, key=_seconds)
        for each in described.raw_description.pending_activities
    ]
    busy = any(datetime.now(UTC) - each.ToDatetime(UTC) < SETTLED for each in news)
    return "open" if not (task.attempt or busy) and described.history_length > 3 else ""


def _seconds(time: Timestamp) -> int:
    return time.seconds


async def judged(
    client: Client, inputs: Sequence[Any], start: Callable[[Any], Awaitable[str]], attempts: int = STUCK
) -> Verdict:
    """Start a workflow for each input, and wait until it is known what becomes of it; none is left behind."""
    verdict = Verdict()

    async def one(number: int, given: Any) -> None:
        try:
            handle = client.get_workflow_handle(await start(given))
        except (RPCError, ValueError, TypeError, UnicodeError, RecursionError):
            verdict.refused += 1
            return
        state = await until(lambda: state_of(handle, attempts), f"input {number} is judged", patience=300, every=0.2)
        if state == "open":
            verdict.open += 1
        elif state in ("ended", "completed"):
            verdict.ended += 1
            verdict.completed += state == "completed"
        else:
            verdict.stuck.append((number, given))
        with suppress(RPCError):
            await handle.terminate("judged")

    await gathered([partial(one, number, given) for number, given in enumerate(inputs)])
    return verdict


async def gathered(jobs: Sequence[Callable[[], Awaitable[T]]], at_once: int = AT_ONCE) -> list[T]:
    """Do all jobs, so many at a time."""
    free = asyncio.Semaphore(at_once)

    async def one(job: Callable[[], Awaitable[T]]) -> T:
        async with free:
            return await job()

    return await asyncio.gather(*(one(job) for job in jobs))


CEILING = timedelta(minutes=10)
"""Execution timeout of what the fuzzers start."""
