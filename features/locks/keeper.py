"""WorkspaceLockWorkflow: keeps the lock on one workspace, for plans of any worker of the namespace.

Its id is derived from the directory, so there is one at a time; see `workflows.keeper`.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from pydantic import ValidationError
from temporalio import workflow
from temporalio.exceptions import ApplicationError

from plansurvive.features.locks.lock_book import LockBook, Telling
from plansurvive.features.locks.model import LockRelease, LockRequest
from plansurvive.plans.errors import PlanError
from plansurvive.workflows.keeper import RETRY, Keeper, message_of, state_of

_TIMEOUT = timedelta(seconds=10)


@workflow.defn(name="WorkspaceLockWorkflow", failure_exception_types=[PlanError, ValidationError])
class WorkspaceLockWorkflow(Keeper):
    """The line of plans that want one workspace to themselves."""

    looks_for = "look for the holder"
    book: LockBook

    @workflow.init
    def __init__(self, *arguments: Any) -> None:
        super().__init__()
        self.book = LockBook.model_validate(state_of(arguments))

    @workflow.run
    async def run(self, *_: Any) -> None:
        """Give the lock to the first in the line until nobody is left."""
        await self.keep()

    @workflow.signal(description="Sent by plans: they ask for the lock.")
    def ask(self, *arguments: Any) -> None:
        """Put a plan into the line. What cannot be read is left out."""
        message = message_of(LockRequest, arguments)
        if message is not None:
            self.changed(newcomer=self.book.ask(message))

    @workflow.signal(description="Sent by plans: they need the lock no more.")
    def release(self, *arguments: Any) -> None:
        """Take a plan out of the line."""
        message = message_of(LockRelease, arguments)
        if message is not None and self.book.release(message):
            self.changed()

    @workflow.query(description="Who holds the lock, and who waits for it, in this order.")
    def line(self) -> list[str]:
        """The workflows in the line; the first one holds the lock."""
        return [each.asked.workflow_id for each in self.book.line]

    async def tell(self) -> None:
        """Tell plans who holds the lock; one that has ended leaves the line."""
        while telling := self.book.untold():
            await asyncio.gather(*(self._tell_one(each) for each in telling))

    async def _tell_one(self, telling: Telling) -> None:
        self.book.tell(telling)
        handle = workflow.get_external_workflow_handle(telling.workflow_id)
        try:
            await handle.signal("workspace_lock", telling.news.model_dump(mode="json"))
        except ApplicationError:  # it has ended
            for each in [each for each in self.book.line if each.asked.token == telling.news.token]:
                self.book.drop(each.asked)

    async def look(self) -> None:
        """Ask whether the holder has ended."""
        holder = self.book.holder
        if holder is None:
            return
        over: bool = await workflow.execute_activity(
            "has_ended", holder, result_type=bool, start_to_close_timeout=_TIMEOUT, retry_policy=RETRY,
            summary=f"does {holder.workflow_id} still run?"[:200],
        )  # fmt: skip
        if over:
            self.book.drop(holder)
