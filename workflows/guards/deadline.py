"""The timer of a plan's deadline. A plan without one starts no timer.

The timer follows the deadline: an edit may move it, and what closes the plan has none.
"""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import TYPE_CHECKING

from temporalio import workflow

from plansurvive.plans.guards import deadline
from plansurvive.plans.run import Run

if TYPE_CHECKING:
    from plansurvive.workflows.execution import Execution


def edited(run: Run, before: float | None) -> None:
    """Let an edited `timeout` count, also if the plan was started with another one. `before`: as the plan had it."""
    if run.plan.timeout != before and run.options.timeout is not None:
        run.options = run.options.model_copy(update={"timeout": None})


class DeadlineTimer:
    """Runs while a plan has a deadline to come."""

    def __init__(self) -> None:
        self._until: datetime | None = None
        self._timer: asyncio.Task[None] | None = None

    @property
    def has_passed(self) -> bool:
        """Whether the deadline has passed, and the plan must end."""
        return self._timer is not None and self._timer.done()

    def set(self, execution: Execution) -> None:
        """Let the timer run until the plan's deadline; stop it if there is none any more."""
        until = deadline.awaited(execution.run)
        if until == self._until:
            return
        self.stop()
        self._until = until
        if until is not None:
            seconds = max(0.0, (until - workflow.now()).total_seconds())
            self._timer = asyncio.create_task(workflow.sleep(seconds, summary=f"deadline of {execution.run.plan.id}"))

    def stop(self) -> None:
        """Stop the timer, if it runs."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._until = None, None

    async def ended(self, execution: Execution) -> bool:
        """End the plan if its deadline has passed: cancel its running steps. Whether it has."""
        if not self.has_passed or deadline.awaited(execution.run) is None:
            return False
        reason = deadline.end(execution.run, workflow.now())
        execution.schedule.unpause(workflow.now(), reason)  # a `finally` inside it must be able to start
        self.stop()
        await execution.cancel(reason)
        return True
