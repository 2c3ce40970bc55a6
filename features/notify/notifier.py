"""NotifyWorkflow: says what a plan's people are to be told, once, on time, for as long as it takes.

Its id is `notify-<workflow id of the plan>`; the plan starts it with its first news, and never waits for it. So it
outlives the plan, its cancellation and its termination. Every message is one activity `notify`, retried for a day; one
target that is away delays no other. `features.notify.outbox` decides what is due.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from pydantic import ValidationError
from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import FailureError, is_cancelled_exception

from plansurvive.features.notify.outbox import LINGER, Delivered, Delivery, Outbox
from plansurvive.features.notify.rules import News
from plansurvive.plans.errors import PlanError
from plansurvive.workflows import policies
from plansurvive.workflows.inputs import undecodable

PATIENCE = timedelta(hours=24)
"""How long a message is tried; longer than an outage that nobody repairs over night."""
_ATTEMPT = timedelta(seconds=90)
_RETRY = RetryPolicy(
    initial_interval=timedelta(seconds=1), backoff_coefficient=2.0, maximum_interval=timedelta(minutes=1)
)


@workflow.defn(name="NotifyWorkflow", failure_exception_types=[PlanError, ValidationError])
class NotifyWorkflow:
    """Delivers the notifications of one plan and everything below it."""

    @workflow.init
    def __init__(self, *arguments: Any) -> None:
        state = arguments[0] if arguments and isinstance(arguments[0], dict) else {}
        self._outbox = Outbox.model_validate(state)
        self._busy: dict[str, asyncio.Task[None]] = {}
        self._number = 0
        self._refused = 0

    @workflow.run
    async def run(self, *_: Any) -> dict[str, Any]:
        """Deliver what is due until nothing has been for an hour. Returns how many messages were said."""
        while True:
            for delivery in self._outbox.due(workflow.now(), self._busy):
                self._busy[delivery.target] = asyncio.create_task(self._deliver(delivery))
            if not self._busy and workflow.info().is_continue_as_new_suggested():
                await workflow.wait_condition(workflow.all_handlers_finished)
                workflow.continue_as_new(self._outbox.model_dump(mode="json", exclude_defaults=True))
            if self._is_over():
                return self.told()
            await self._next()

    @workflow.signal(description="Sent by plans: what is new in them.")
    def news(self, *arguments: Any) -> None:
        """Add what a plan's people are to be told. What cannot be read is counted, and left out."""
        try:
            self._number += 1
            if undecodable(arguments, f"undecodable-news-{self._number}") is not None or len(arguments) != 1:
                raise ValueError
            self._outbox.take(News.model_validate(arguments[0]), workflow.now())
        except ValueError:
            self._refused += 1

    @workflow.query(description="How many messages were sent, withdrawn and given up, and what is still to be sent.")
    def told(self) -> dict[str, Any]:
        """What was said so far."""
        left = self._outbox
        return {
            "said": left.said, "withdrawn": left.withdrawn, "lost": left.lost, "refused": self._refused,
            "sending": len(self._busy), "waiting": len(left.notices),
        }  # fmt: skip

    def _is_over(self) -> bool:
        """Whether nothing has been to do for long enough."""
        outbox, now = self._outbox, workflow.now()
        if self._busy or outbox.notices:
            outbox.idle_since = None
            return False
        outbox.idle_since = outbox.idle_since or now
        return now >= outbox.idle_since + LINGER

    async def _next(self) -> None:
        """Wait for news, for the end of a delivery, or until something is due."""
        outbox, now, number, busy = self._outbox, workflow.now(), self._number, len(self._busy)
        due: datetime | None = outbox.next_due(now, self._busy)
        if due is None and outbox.idle_since is not None:
            due = outbox.idle_since + LINGER
        left = None if due is None else max(0.05, (due - now).total_seconds())
        try:
            await workflow.wait_condition(
                lambda: self._number != number or len(self._busy) != busy, timeout=left, timeout_summary="next message"
            )
        except TimeoutError:
            return

    async def _deliver(self, delivery: Delivery) -> None:
        done: Delivered | None = None
        try:
            done = await workflow.execute_activity(
                "notify",
                delivery,
                result_type=Delivered,
                summary=_summary(delivery),
                start_to_close_timeout=_ATTEMPT,
                schedule_to_close_timeout=PATIENCE,
                heartbeat_timeout=policies.HEARTBEAT_TIMEOUT,
                retry_policy=_RETRY,
            )
        except FailureError as error:
            if is_cancelled_exception(error):
                raise
        # Not in a `finally`: that would also run when a worker drops the workflow from its cache.
        self._busy.pop(delivery.target, None)
        self._outbox.ended(delivery, done, workflow.now())


def _summary(delivery: Delivery) -> str:
    what: Sequence[str] = [delivery.event, *([delivery.stage] if delivery.stage != "first" else [])]
    return f"{' '.join(what)} -> {delivery.target} ({len(delivery.notices)})"
