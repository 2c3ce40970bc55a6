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

LEGACY = "legacy_query"
"""The id that the SDK gives a query which comes by itself, not with a workflow task."""
MOST = 10_000
"""Suspected runs that are remembered."""


class Evictions:
    """Asks a worker to drop a run from its cache, so that its next workflow task replays it."""

    def __init__(self) -> None:
        self._request: Callable[[str], None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._suspected = set[str]()

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

    def is_first(self, run_id: str) -> bool:
        """Whether a run is suspected for the first time, as far as is remembered. Called in threads of workflows."""
        if run_id in self._suspected:
            return False
        if len(self._suspected) >= MOST:
            self._suspected.clear()
        self._suspected.add(run_id)
        return True


class EarlyEvents:
    """Looks at the activations of one run."""

    def __init__(self, is_first: Callable[[str], bool]) -> None:
        """`is_first`: whether a run, by its id, is suspected for the first time (`Evictions.is_first`)."""
        self._is_first = is_first
        self._length, self._is_replay = 0, False
        self._times = set[tuple[int, int]]()
        """Of the activations with this much history: a local activity that ends gives the next one a later time."""
        self._is_ahead = self._may_be_ahead = False

    def are_answered(self, act: Any) -> bool:
        """Whether this activation answers a query from events that no workflow task has brought, or may do so.

        An activation has the time of the workflow task that it belongs to: more history at the same time is none's. The
        last task before may have had no activation of its own: a query during a local activity cuts a task in two, and
        on replay the two are one, with the time of the first. So what follows a replay is suspected as well, once: a
        plan that is watched is not played through again after each of its tasks.
        """
        jobs = act.jobs
        if jobs and jobs[0].HasField("query_workflow") and all(job.HasField("query_workflow") for job in jobs):
            if self._is_ahead:
                return True
            is_own = all(job.query_workflow.query_id == LEGACY for job in jobs)  # others come with a task
            return self._may_be_ahead and is_own and self._is_first(act.run_id)
        length, time = act.history_length, (act.timestamp.seconds, act.timestamp.nanos)
        if length > self._length:  # else it goes on with the same events
            is_new = self._length > 0 and not act.is_replaying
            self._is_ahead, self._may_be_ahead = is_new and time in self._times, is_new and self._is_replay
            self._length, self._times = length, set()
        self._times.add(time)
        self._is_replay = act.is_replaying
        return False
