"""Makes quick calls, one at a time: as many in a workflow task as its window allows; the next one is an activity.

A local activity's result is in history when its workflow task ends, and a task lasts as long as local activities follow
each other. A timer would end it as well, but a server fires it up to a second late.

What a window holds is known from results alone, so a replay decides the same: a window ends with the activity that a
call became when it was full, or with a result that came long after its beginning. One at a time, because a replay has
the results of concurrent local activities in the order of their starts, whatever the order in which they came
(temporalio/sdk-python pull request 1573). Calls beside it are activities: a worker's calls share its event loop, so a
fan-out gains nothing from being recorded together.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError, FailureError

from plans.quick.batching import FULL_SECONDS, MAX_CALLS, NOT_QUICK, STALE_SECONDS, STRIKES
from plans.run import Run
from workflows.quick.by_events import EventWindow, Otherwise, Quickly, is_cancelled

_ONCE = RetryPolicy(maximum_attempts=1)
_TIMEOUT = timedelta(seconds=2)
"""Of a local activity, where the worker cannot end it in time: it waits for a slot, or the worker hangs."""


class Window:
    """The quick calls of a workflow, one workflow task after the other."""

    def __init__(self, run: Run) -> None:
        self._run, self._older = run, EventWindow(run.slow)
        self._busy, self._calls = False, 0
        self._began: float | None = None
        self._ended = 0.0

    async def call(self, tool: str, quickly: Quickly, otherwise: Otherwise) -> dict[str, Any]:
        """The result of a tool call: of a quick one, or of an activity. Raises as an activity does."""
        if not self._run.facts.windows_by_result:
            return await self._older.call(tool, quickly, otherwise)
        if self._busy or self._run.slow.get(tool, 0) >= STRIKES:
            return await otherwise()
        self._busy = True
        try:
            if not self._is_full and (returned := await self._quick(tool, quickly)) is not None:
                return returned
            try:
                return await otherwise()
            finally:  # its end is in another workflow task
                self._calls, self._began, self._ended = 0, None, 0.0
        finally:
            self._busy = False

    async def _quick(self, tool: str, quickly: Quickly) -> dict[str, Any] | None:
        """The result of a quick call; None if it failed. Why is not said: it is made again, and then it counts."""
        self._calls += 1
        try:
            returned = await quickly(self._began)
        except FailureError as error:  # of a local activity, its own failure, or an ActivityError for a time limit
            if is_cancelled():
                raise
            if not isinstance(error, ApplicationError) or error.type == NOT_QUICK:
                self._run.slow[tool] = self._run.slow.get(tool, 0) + 1
            return None
        self._note(float(returned["quick"]["began"]), float(returned["quick"]["ended"]))
        return returned

    @property
    def _is_full(self) -> bool:
        lasted = 0.0 if self._began is None else self._ended - self._began
        return self._calls >= MAX_CALLS or not 0 <= lasted < FULL_SECONDS

    def _note(self, began: float, ended: float) -> None:
        if self._began is None or began - self._began > STALE_SECONDS:
            self._began, self._calls = began, 1
        self._ended = ended


def start(tool: str, call: Any, activity_id: str, summary: str) -> workflow.ActivityHandle[dict[str, Any]]:
    """Start a tool's activity as a local one, with one attempt."""
    return workflow.start_local_activity(
        tool,
        call,
        activity_id=activity_id,
        summary=summary,
        start_to_close_timeout=_TIMEOUT,
        schedule_to_close_timeout=_TIMEOUT,
        retry_policy=_ONCE,
    )
