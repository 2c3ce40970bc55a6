"""QuotaWorkflow: keeps the places of one label, for plans of any worker of the namespace.

Its id is derived from the label, so there is one at a time. It is as durable as the plans themselves: a worker or a
server that is killed changes nothing. A plan that ends releases its place; whether one was terminated, which cannot, is
asked while others wait. It ends when the line is empty.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any, TypeVar

from pydantic import ValidationError
from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError

from plansurvive.features.quotas.model import QuotaGranted, QuotaRelease, QuotaRequest
from plansurvive.features.quotas.quota_book import InLine, QuotaBook
from plansurvive.plans.errors import PlanError

FIRST_LOOK, LONGEST = 2.0, 60.0
"""Seconds between two looks whether holders have ended; doubled each time, and begun again with each newcomer."""
Message = TypeVar("Message", QuotaRequest, QuotaRelease)
_TIMEOUT = timedelta(seconds=30)
_RETRY = RetryPolicy(initial_interval=timedelta(seconds=1), maximum_interval=timedelta(seconds=30))


@workflow.defn(name="QuotaWorkflow", failure_exception_types=[PlanError, ValidationError])
class QuotaWorkflow:
    """The line of plans with one label."""

    @workflow.init
    def __init__(self, *arguments: Any) -> None:
        state = arguments[0] if arguments and isinstance(arguments[0], dict) else {}
        self._book = QuotaBook.model_validate(state)
        self._pause, self._news = FIRST_LOOK, 0

    @workflow.run
    async def run(self, *_: Any) -> None:
        """Give places to the first in the line until nobody is left."""
        while True:
            while untold := self._book.grant():
                await asyncio.gather(*(self._tell(each) for each in untold))
            if not self._book.line:
                return
            if workflow.info().is_continue_as_new_suggested():
                await workflow.wait_condition(workflow.all_handlers_finished)
                workflow.continue_as_new(self._book.model_dump(mode="json"))
            await self._next()

    @workflow.signal(description="Sent by plans: they ask for a place.")
    def ask(self, *arguments: Any) -> None:
        """Put a plan into the line. What cannot be read is left out."""
        message = _read(QuotaRequest, arguments)
        if message is not None:
            self._news += 1
            if self._book.ask(message):
                self._pause = FIRST_LOOK

    @workflow.signal(description="Sent by plans: they need their place no more.")
    def release(self, *arguments: Any) -> None:
        """Take a plan out of the line."""
        message = _read(QuotaRelease, arguments)
        if message is not None and self._book.release(message):
            self._news += 1

    @workflow.query(description="Who has a place, and who waits for one, in this order.")
    def places(self) -> dict[str, Any]:
        """The line, a QuotaRow."""
        return self._book.row.model_dump(mode="json")

    async def _tell(self, place: InLine) -> None:
        """Tell a plan that it has a place; one that has ended leaves the line."""
        place.told = True
        handle = workflow.get_external_workflow_handle(place.request.workflow_id)
        try:
            message = QuotaGranted(token=place.request.token)
            await handle.signal("quota_place", message.model_dump(mode="json"))
        except ApplicationError:  # it has ended
            self._book.drop([place.request.token])

    async def _next(self) -> None:
        """Wait for a message; while plans wait, look now and then whether holders have ended."""
        news, holders = self._news, self._book.holders
        try:
            await workflow.wait_condition(
                lambda: self._news != news,
                timeout=self._pause if len(holders) < len(self._book.line) else None,
                timeout_summary="look for plans that have ended",
            )
        except TimeoutError:
            self._pause = min(2 * self._pause, LONGEST)
            over: list[str] = await workflow.execute_activity(
                "ended_of_quota", holders, result_type=list[str], start_to_close_timeout=_TIMEOUT, retry_policy=_RETRY,
                summary=f"do the plans with {self._book.label} still run?"[:200],
            )  # fmt: skip
            self._book.drop(over)


def _read(kind: type[Message], arguments: tuple[Any, ...]) -> Message | None:
    try:
        return kind.model_validate(arguments[0]) if len(arguments) == 1 else None
    except ValidationError:
        return None
