"""Timers for approvals: one per step that awaits approval until a deadline.

What a passed deadline means is decided by `plans.execution.next_action.after_timeout`. The deadlines are in the Run as
well, so that the timers can be started again after continue-as-new.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from datetime import datetime

from temporalio import workflow


class ApprovalTimers:
    """The deadlines of one Execution."""

    def __init__(self) -> None:
        self._timers: dict[str, asyncio.Task[None]] = {}
        self._passed: deque[str] = deque()

    @property
    def names(self) -> list[str]:
        """The steps that have a deadline."""
        return list(self._timers)

    @property
    def have_passed(self) -> bool:
        """Whether a step has waited long enough."""
        return bool(self._passed)

    def keep(self, step_id: str, deadline: datetime) -> None:
        """Set the timer of a step."""
        self._timers[step_id] = asyncio.create_task(self._wait(step_id, deadline))

    def drop(self, step_id: str) -> None:
        """The step waits no more."""
        timer = self._timers.pop(step_id, None)
        if timer:
            timer.cancel()

    def cancel(self) -> None:
        """No step waits any more."""
        for timer in self._timers.values():
            timer.cancel()

    def passed(self) -> Iterator[str]:
        """The steps whose deadline passed, each told once."""
        while self._passed:
            step_id = self._passed.popleft()
            self._timers.pop(step_id, None)
            yield step_id

    async def _wait(self, step_id: str, deadline: datetime) -> None:
        await workflow.sleep(max(0.0, (deadline - workflow.now()).total_seconds()), summary=f"approval of {step_id}")
        self._passed.append(step_id)
