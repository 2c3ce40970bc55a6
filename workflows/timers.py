"""Durable timers: steps that sleep, time limits of approvals, answers and events, and rests between costly steps.

A step's deadline is in its state, so that its timer can be restarted after continue-as-new.
`plans.execution.next_action.after_timeout` decides what happens at that of an approval.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
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


class ApprovalTimers:
    """One timer per step of an Execution that awaits something with a deadline, by step id."""

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


def sleep_of(state: StepState) -> asyncio.Task[dict[str, Any]]:
    """A task that sleeps until the step's deadline and returns what a tool's activity would."""
    began = state.changes[-1].time
    return asyncio.create_task(_sleep(state.deadline or began, began))


async def _sleep(until: datetime, began: datetime) -> dict[str, Any]:
    seconds = (until - workflow.now()).total_seconds()
    if seconds > 0:
        await workflow.sleep(seconds, summary="sleep")
    return {"value": {"until": until.isoformat()}, "duration": (until - began).total_seconds() * 1000}
