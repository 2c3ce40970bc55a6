"""WorkspaceLockWorkflow: keeps the lock on one workspace, for plans of any worker of the namespace.

Its id is derived from the directory, so there is one at a time. It is as durable as the plans themselves: a worker or a
server that is killed changes nothing. A plan that ends releases the lock; whether one was terminated, which cannot, is
asked while others wait. It ends when the line is empty.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, TypeVar

from pydantic import ValidationError
from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError

from plansurvive.features.locks.lock_book import LockBook, Telling
from plansurvive.features.locks.model import LockRelease, LockRequest
from plansurvive.plans.errors import PlanError

FIRST_LOOK, LONGEST = 2.0, 60.0
"""Seconds between two looks whether the holder has ended; doubled each time, and begun again with each newcomer."""
Message = TypeVar("Message", LockRequest, LockRelease)
_TIMEOUT = timedelta(seconds=10)
_RETRY = RetryPolicy(initial_interval=timedelta(seconds=1), maximum_interval=timedelta(seconds=30))


@workflow.defn(name="WorkspaceLockWorkflow", failure_exception_types=[PlanError, ValidationError])
class WorkspaceLockWorkflow:
    """The line of plans that want one workspace to themselves."""

    @workflow.init
    def __init__(self, *arguments: Any) -> None:
        state = arguments[0] if arguments and isinstance(arguments[0], dict) else {}
        self._book = LockBook.model_validate(state)
        self._pause, self._news = FIRST_LOOK, 0

    @workflow.run
    async def run(self, *_: Any) -> None:
        """Give the lock to the first in the line until nobody is left."""
        while True:
            await self._tell()
            if not self._book.line:
                return
            if workflow.info().is_continue_as_new_suggested():
                await workflow.wait_condition(workflow.all_handlers_finished)
                workflow.continue_as_new(self._book.model_dump(mode="json"))
            await self._next()

    @workflow.signal(description="Sent by plans: they ask for the lock.")
    def ask(self, *arguments: Any) -> None:
        """Put a plan into the line. What cannot be read is left out."""
        message = _read(LockRequest, arguments)
        if message is not None:
            self._news += 1
            if self._book.ask(message):
                self._pause = FIRST_LOOK

    @workflow.signal(description="Sent by plans: they need the lock no more.")
    def release(self, *arguments: Any) -> None:
        """Take a plan out of the line."""
        message = _read(LockRelease, arguments)
        if message is not None and self._book.release(message):
            self._news += 1

    @workflow.query(description="Who holds the lock, and who waits for it, in this order.")
    def line(self) -> list[str]:
        """The workflows in the line; the first one holds the lock."""
        return [each.asked.workflow_id for each in self._book.line]

    async def _tell(self) -> None:
        """Tell plans what is new for them; one that has ended leaves the line."""
        while telling := self._book.untold():
            await asyncio.gather(*(self._tell_one(each) for each in telling))

    async def _tell_one(self, telling: Telling) -> None:
        self._book.tell(telling)
        handle = workflow.get_external_workflow_handle(telling.workflow_id)
        try:
            await handle.signal("workspace_lock", telling.news.model_dump(mode="json"))
        except ApplicationError:  # it has ended
            for place in [each for each in self._book.line if each.asked.token == telling.news.token]:
                self._book.drop(place.asked)

    async def _next(self) -> None:
        """Wait for a message; while others wait, look now and then whether the holder has ended."""
        news, waiting = self._news, len(self._book.line) > 1
        try:
            await workflow.wait_condition(
                lambda: self._news != news,
                timeout=self._pause if waiting else None,
                timeout_summary="look for the holder",
            )
        except TimeoutError:
            self._pause = min(2 * self._pause, LONGEST)
            await self._look()

    async def _look(self) -> None:
        holder = self._book.holder
        if holder is None:
            return
        over: bool = await workflow.execute_activity(
            "has_ended", holder, result_type=bool, start_to_close_timeout=_TIMEOUT, retry_policy=_RETRY,
            summary=f"does {holder.workflow_id} still run?"[:200],
        )  # fmt: skip
        if over:
            self._book.drop(holder)


def _read(kind: type[Message], arguments: Sequence[Any]) -> Message | None:
    try:
        return kind.model_validate(arguments[0]) if len(arguments) == 1 else None
    except ValidationError:
        return None
