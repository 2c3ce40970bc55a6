"""The windows of runs whose history began with an older version, which went by the length of history.

Kept for their replay alone. A replay has a result that came at the beginning of a workflow task in the task before
already, so the length of history is not the same then; and results of calls made at a time come in another order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError, FailureError

from plans.quick.batching import FULL_SECONDS, IN_FLIGHT, MAX_CALLS, NOT_QUICK, STRIKES

Quickly = Callable[[float | None], Awaitable[dict[str, Any]]]
"""Makes a call as a local activity, given when the window began."""
Otherwise = Callable[[], Awaitable[dict[str, Any]]]
"""Makes it as an activity."""


class EventWindow:
    """The quick calls of a workflow, one workflow task after the other."""

    def __init__(self, slow: dict[str, int]) -> None:
        self._slots = asyncio.Semaphore(IN_FLIGHT)
        self._task, self._calls, self._ending = -1, 0, False
        self._began: float | None = None
        self._ended = 0.0
        self._rest: asyncio.Task[None] | None = None
        self._slow = slow

    async def call(self, tool: str, quickly: Quickly, otherwise: Otherwise) -> dict[str, Any]:
        """The result of a tool call: of a quick one, or of an activity. Raises as an activity does."""
        if self._slow.get(tool, 0) < STRIKES:
            async with self._slots:
                if await self._has_room() and (returned := await self._quick(tool, quickly)) is not None:
                    return returned
        return await otherwise()

    async def _has_room(self) -> bool:
        """Whether the window has room, or the next one has. False: this call is to end the workflow task."""
        while self._is_full():
            if not self._ending:
                self._ending = True
                return False
            if self._rest is None or self._rest.done():  # in case that the other call takes long
                self._rest = asyncio.create_task(workflow.sleep(0.001, summary="record quick calls"))
            await workflow.wait_condition(lambda: not self._is_full())
        return True

    async def _quick(self, tool: str, quickly: Quickly) -> dict[str, Any] | None:
        """The result of a quick call; None if it failed. Why is not said: it is made again, and then it counts."""
        self._calls += 1
        try:
            returned = await quickly(self._began)
        except FailureError as error:  # of a local activity, its own failure, or an ActivityError for a time limit
            if is_cancelled():
                raise
            if self._began is None:  # what else is in flight began at a time that is not known
                self._calls = MAX_CALLS
            if not isinstance(error, ApplicationError) or error.type == NOT_QUICK:
                self._slow[tool] = self._slow.get(tool, 0) + 1
            return None
        self._note(returned["quick"])
        return returned

    def _is_full(self) -> bool:
        task = workflow.info().get_current_history_length()
        if task != self._task:
            self._task, self._calls, self._began, self._ended, self._ending = task, 0, None, 0.0, False
        lasted = 0.0 if self._began is None else self._ended - self._began
        return self._calls >= MAX_CALLS or not 0 <= lasted < FULL_SECONDS

    def _note(self, quick: Any) -> None:
        began, ended = float(quick["began"]), float(quick["ended"])
        self._began = began if self._began is None else min(self._began, began)
        self._ended = max(self._ended, ended)


def is_cancelled() -> bool:
    """Whether the step is being cancelled, as opposed to its local activity alone, which ends with its worker."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
