"""Hands what is new in a plan or agent to its `NotifyWorkflow`, with the local activity `tell`: one event each.

Only a run with rules pays for it. It happens beside the plan: a failure is tried again later, and neither delays nor
fails a step. What was handed over is noted in the Run, so nothing is lost by continue-as-new.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import FailureError, is_cancelled_exception

from plans.execution.schedule import Schedule
from plans.notify.news import News, effective, handed_over, news_of
from workflows.completion import of_json

_TIMEOUT = timedelta(seconds=5)
_IN_ALL = timedelta(seconds=12)
_RETRY = RetryPolicy(initial_interval=timedelta(milliseconds=200), maximum_attempts=3)
_FIRST_PAUSE, _LONGEST_PAUSE = 10.0, 600.0
"""Seconds until what could not be handed over is tried again; doubled each time."""


class Teller:
    """Hands over the news of one run of a workflow."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None
        self._is_calling = False

    def look(self, schedule: Schedule) -> None:
        """Hand over what is new, without waiting for it."""
        if (self._task is None or self._task.done()) and self._news(schedule) is not None:
            self._task = asyncio.create_task(self._work(schedule))

    async def rest(self) -> None:
        """Wait for a call that is under way, before continue-as-new. The rest is in the Run."""
        await workflow.wait_condition(lambda: not self._is_calling)

    async def end(self, schedule: Schedule) -> None:
        """Hand over the last news, before the workflow ends: it is tried once more, then left."""
        await self.rest()
        if self._task is not None:
            self._task.cancel()
        while (news := self._news(schedule)) is not None and await self._hand_over(schedule, news):
            pass

    def _news(self, schedule: Schedule) -> News | None:
        run, info = schedule.run, workflow.info()
        rules = effective(run, info.parent is not None)
        if not rules:
            return None
        return news_of(
            run, list(schedule.awaiting), rules, workflow.now(), workflow_id=info.workflow_id,
            run_id=info.first_execution_run_id, root=info.root.workflow_id if info.root else info.workflow_id,
        )  # fmt: skip

    async def _work(self, schedule: Schedule) -> None:
        pause = _FIRST_PAUSE
        while (news := self._news(schedule)) is not None:
            if not await self._hand_over(schedule, news):
                await workflow.sleep(pause, summary="hand over notifications")
                pause = min(pause * 2, _LONGEST_PAUSE)

    async def _hand_over(self, schedule: Schedule, news: News) -> bool:
        self._is_calling = True
        try:
            await workflow.execute_local_activity(
                "tell",
                of_json(news.model_dump_json(exclude_defaults=True)),
                summary="hand over notifications",
                start_to_close_timeout=_TIMEOUT,
                schedule_to_close_timeout=_IN_ALL,
                retry_policy=_RETRY,
            )
        except FailureError as error:
            if is_cancelled_exception(error):
                raise
            return False
        finally:
            self._is_calling = False
        handed_over(schedule.run, news, schedule.awaiting)
        return True
