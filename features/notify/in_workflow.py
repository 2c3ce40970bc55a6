"""Hands what is new in a plan or agent to its `NotifyWorkflow`, with the local activity `tell`: one event each.

Only a run with rules pays for it. It happens beside the plan: a failure is tried again later, and neither delays nor
fails a step. What was handed over is noted in the Run, so nothing is lost by continue-as-new.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import FailureError, is_cancelled_exception

from plansurvive.features.notify.model import Told
from plansurvive.features.notify.notifier import NotifyWorkflow
from plansurvive.features.notify.rules import News, effective, handed_over, with_news
from plansurvive.plans.activity_io import Facts
from plansurvive.plans.definition.checks.validation import errors
from plansurvive.plans.model import Problem
from plansurvive.plans.model.notify import NotifyRule
from plansurvive.plans.run import Run
from plansurvive.workflows import policies
from plansurvive.workflows.execution import Execution
from plansurvive.workflows.feature import InRun
from plansurvive.workflows.payloads import of_json

_TIMEOUT = timedelta(seconds=5)
_IN_ALL = timedelta(seconds=12)
_RETRY = RetryPolicy(initial_interval=timedelta(milliseconds=200), maximum_attempts=3)
_LISTED = 10
"""Problems of a refused plan that are named."""
_FIRST_PAUSE, _LONGEST_PAUSE = 10.0, 600.0
"""Seconds until what could not be handed over is tried again; doubled each time."""


class Teller(InRun):
    """Hands over the news of one run of a workflow."""

    feature = "notify"
    of_one_run = True

    def __init__(self, execution: Execution) -> None:
        super().__init__(execution)
        self._schedule = execution.schedule
        self._task: asyncio.Task[None] | None = None
        self._is_calling, self._is_child = False, workflow.info().parent is not None
        told = execution.run.part(Told)
        if execution.run.resumes and told == Told():
            told.budget = execution.run.seq  # what an agent's log says of the run before was told there

    @classmethod
    async def refused(cls, run: Run, facts: Facts, problems: Sequence[Problem]) -> None:
        """Hand over that a plan never began, as its workers refused it."""
        rules = effective(run.model_copy(update={"facts": facts}), workflow.info().parent is not None)
        if any("failed" in rule.on for rule in rules):
            reason = "\n".join(problem.text for problem in errors(list(problems))[:_LISTED])
            await _tell(_news(run, rules, ended="failed", reason=f"it was refused\n{reason}"[:2_000]))

    def shown(self) -> None:
        """Hand over what is new, without waiting for it."""
        if (self._task is None or self._task.done()) and self._news() is not None:
            self._task = asyncio.create_task(self._work())

    async def resting(self) -> None:
        """Wait for a call that is under way, before continue-as-new. The rest is in the Run."""
        await workflow.wait_condition(lambda: not self._is_calling)

    async def ended(self) -> None:
        """Hand over the last news, before the workflow ends: it is tried once more, then left."""
        await self.resting()
        if self._task is not None:
            self._task.cancel()
        while (news := self._news()) is not None and await self._hand_over(news):
            pass

    def _news(self) -> News | None:
        run = self._schedule.run
        rules = effective(run, self._is_child)
        if not rules:
            return None
        return with_news(run, list(self._schedule.awaiting), _news(run, rules))

    async def _work(self) -> None:
        pause = _FIRST_PAUSE
        while (news := self._news()) is not None:
            if not await self._hand_over(news):
                await workflow.sleep(pause, summary="hand over notifications")
                pause = min(pause * 2, _LONGEST_PAUSE)

    async def _hand_over(self, news: News) -> bool:
        self._is_calling = True
        try:
            is_told = await _tell(news)
        finally:
            self._is_calling = False
        if is_told:
            handed_over(self._schedule.run, news, self._schedule.awaiting)
        return is_told


async def _tell(news: News) -> bool:
    """Start the NotifyWorkflow with news, or signal it. False if that failed."""
    try:
        await workflow.execute_local_activity(
            "tell",
            of_json(news.model_dump_json(exclude_defaults=True)),
            summary="hand over notifications",
            start_to_close_timeout=_TIMEOUT,
            schedule_to_close_timeout=_IN_ALL,
            retry_policy=_RETRY,
            local_retry_threshold=policies.LOCAL_WAIT,
        )
    except FailureError as error:
        if is_cancelled_exception(error):
            raise
        return False
    return True


def _news(run: Run, rules: list[NotifyRule], **more: Any) -> News:
    """News of this workflow, without anything new yet."""
    info = workflow.info()
    return News(
        plan_id=run.plan.id or "", workflow_id=info.workflow_id, run_id=info.first_execution_run_id,
        root=info.root.workflow_id if info.root else info.workflow_id, title=run.plan.title, rules=rules,
        at=workflow.now(), **more,
    )  # fmt: skip


IN_RUN, WORKFLOWS = Teller, (NotifyWorkflow,)
