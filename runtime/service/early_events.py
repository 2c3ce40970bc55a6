"""Runs that were shown events before the workflow task that brings them; they must leave the worker's cache.

A query that waited for a worker that has died reaches another with the history as it is by then. If a workflow task is
due and has not begun, the SDK applies its events all the same, answers, and keeps the run. When the task comes, what
arrived meanwhile is applied apart from those. A replay has all events of one task at once, signals first, so commands
may come in another order, and the plan is stuck with a nondeterminism error (measured: docs/temporal.md).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from temporalio.worker import Worker


class Evictions:
    """Asks a worker to drop a run from its cache, so that its next workflow task replays it."""

    def __init__(self) -> None:
        self._request: Callable[[str], None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def of(self, worker: Worker) -> None:
        """Ask this worker from now on. The request is private to the SDK: without it, runs stay."""
        self._request = getattr(vars(worker).get("_bridge_worker"), "request_workflow_eviction", None)

    def began(self) -> None:
        """Remember the event loop of the worker, which calls this."""
        with suppress(RuntimeError):  # a replayer has none
            self._loop = asyncio.get_running_loop()

    def ask(self, run_id: str) -> None:
        """Drop a run, once its present activation is over. Called in a thread of a workflow."""
        if self._request is not None and self._loop is not None:
            self._loop.call_soon_threadsafe(self._request, run_id)


class EarlyEvents:
    """Looks at the activations of one run."""

    def __init__(self) -> None:
        self._length, self._time = 0, (0, 0)
        self._is_ahead = False

    def are_answered(self, act: Any) -> bool:
        """Whether this activation answers a query from events that no workflow task has brought.

        An activation has the time of the workflow task that it belongs to: more history at the same time is none's.
        """
        length, time = act.history_length, (act.timestamp.seconds, act.timestamp.nanos)
        asks = bool(act.jobs) and all(job.HasField("query_workflow") for job in act.jobs)
        if not asks:
            is_more = 0 < self._length < length and time == self._time
            self._is_ahead = is_more and not act.is_replaying
            self._length, self._time = length, time
        return asks and self._is_ahead
