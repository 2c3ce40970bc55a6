"""Time limits of approvals, answers and events: one timer per step that awaits one with a deadline.

`plans.execution.next_action.after_timeout` decides what happens at the deadline. The deadlines are in the Run as well,
so that the timers can be restarted after continue-as-new.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from datetime import datetime

from temporalio import workflow


class ApprovalTimers:
    """The timers of one Execution, by step id."""

    def __init__(self) -> None:
        self._timers: dict[str, asyncio.Task[None]] = {}
        self._passed: deque[str] = deque()

    @property
    def names(self) -> list[str]:
        """Ids of the steps that have a timer."""
        return list(self._timers)

    @property
    def have_passed(self) -> bool:
        """Whether a deadline passed that `passed` has not returned yet."""
        return bool(self._passed)

    def start(self, step_id: str, deadline: datetime, what: str = "approval") -> None:
        """Start the timer of a step that awaits `what`."""
        self._timers[step_id] = asyncio.create_task(self._wait(step_id, deadline, what))

    def stop(self, step_id: str) -> None:
        """Stop the timer of a step, if it has one."""
        timer = self._timers.pop(step_id, None)
        if timer:
            timer.cancel()

    def stop_all(self) -> None:
        """Stop all timers."""
        for timer in self._timers.values():
            timer.cancel()

    def passed(self) -> Iterator[str]:
        """Ids of the steps whose deadline passed, each returned once."""
        while self._passed:
            step_id = self._passed.popleft()
            self._timers.pop(step_id, None)
            yield step_id

    async def _wait(self, step_id: str, deadline: datetime, what: str) -> None:
        await workflow.sleep(
            max(0.0, (deadline - workflow.now()).total_seconds()), summary=f"{what} of {step_id}"[:200]
        )
        self._passed.append(step_id)
