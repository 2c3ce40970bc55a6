"""The timer of a plan's deadline. A plan without one starts no timer.

The timer follows the deadline: an edit may move it, and what closes the plan has none.
"""

from __future__ import annotations

import asyncio
from datetime import datetime

from temporalio import workflow

from plansurvive.features.deadline.rules import awaited, end
from plansurvive.workflows.execution import Execution
from plansurvive.workflows.feature import InRun


class DeadlineTimer(InRun):
    """Runs while a plan has a deadline to come."""

    feature = "deadline"

    def __init__(self, execution: Execution) -> None:
        super().__init__(execution)
        self._until: datetime | None = None
        self._timer: asyncio.Task[None] | None = None
        execution.run.ends_by.pop(self.feature, None)  # an edit right before continue-as-new may have moved it

    async def turned(self) -> bool:
        """Let the timer run until the plan's deadline; once that has passed, end the plan."""
        run, until = self.execution.run, awaited(self.execution.run)
        if until != self._until:
            self._set(until)
        if until is None or self._timer is None or not self._timer.done():
            return False
        reason = end(run, workflow.now())
        self.execution.schedule.unpause(workflow.now(), reason)  # a `finally` inside it must be able to start
        self._set(None)
        await self.execution.cancel(reason)
        return True

    def _set(self, until: datetime | None) -> None:
        """Let the timer run until then; none: stop it. Views show the time."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._until = None, until
        self.execution.run.ends_by.pop(self.feature, None)
        if until is not None:
            self.execution.run.ends_by[self.feature] = until
            self._timer = asyncio.create_task(self._sleep(until))

    async def _sleep(self, until: datetime) -> None:
        seconds = max(0.0, (until - workflow.now()).total_seconds())
        await workflow.sleep(seconds, summary=f"deadline of {self.execution.run.plan.id}")
        self.execution.wake()


IN_RUN, WORKFLOWS = DeadlineTimer, ()
