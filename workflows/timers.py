"""Durable timers: steps that sleep, with the deadline in their state, and rests between costly steps."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

from temporalio import workflow

from plansurvive.plans.run import StepState

ACTIVATION_UNITS = 3_000_000
"""Units of work (plans/expressions/evaluation.py) for conditions and references per workflow task: some seconds at
worst, of the ten that it has. The other steps are left to the next one."""
ACTIVATION_BYTES = 1_000_000
"""Bytes of arguments sent per workflow task: the server refuses more than 4 MB of commands (TEMPORAL.md 2)."""


def time_of_task() -> datetime:
    """`workflow.now()`, as the event loop of a workflow has it: a third of the calls, for what every step asks."""
    return datetime.fromtimestamp(asyncio.get_running_loop().time(), UTC)


class Rest:
    """A short timer after a workflow task that has worked enough; the next one goes on."""

    def __init__(self) -> None:
        self._worked, self._task = 0, -1  # what was worked, in the task with this much history
        self._timer: asyncio.Task[None] | None = None

    @property
    def is_over(self) -> bool:
        """Whether the rest has ended since `end` was called."""
        return self._timer is not None and self._timer.done()

    def end(self) -> None:
        """At the beginning of a turn: forget a rest that is over."""
        if self.is_over:
            self._timer = None

    def worked(self, units: int) -> None:
        """Count work of this turn."""
        if units:
            self._begin_task()
            self._worked += units

    def may_work(self, units: int) -> bool:
        """Count work of this workflow task. Returns whether more may follow in it."""
        self.worked(units)
        return not self.is_due()

    def is_due(self) -> bool:
        """Whether this workflow task has worked enough, or rests already; starts the rest."""
        if self._timer is None and self._worked > ACTIVATION_UNITS:
            self._begin_task()
            if self._worked:
                self._timer = asyncio.create_task(workflow.sleep(0.001, summary="rest"))
        return self._timer is not None

    def _begin_task(self) -> None:
        task = workflow.info().get_current_history_length()
        if task != self._task:
            self._task, self._worked = task, 0


def sleep_of(state: StepState) -> asyncio.Task[dict[str, Any]]:
    """A task that sleeps until the step's deadline and returns what a tool's activity would."""
    began = state.changes[-1].time
    return asyncio.create_task(_sleep(state.deadline or began, began))


async def _sleep(until: datetime, began: datetime) -> dict[str, Any]:
    seconds = (until - workflow.now()).total_seconds()
    if seconds > 0:
        await workflow.sleep(seconds, summary="sleep")
    return {"value": {"until": until.isoformat()}, "duration": (until - began).total_seconds() * 1000}
