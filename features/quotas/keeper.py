"""QuotaWorkflow: keeps the places of one label, for plans of any worker of the namespace.

Its id is derived from the label, so there is one at a time; see `workflows.keeper`.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from pydantic import ValidationError
from temporalio import workflow
from temporalio.exceptions import ApplicationError

from plansurvive.features.quotas.model import QuotaGranted, QuotaRelease, QuotaRequest
from plansurvive.features.quotas.quota_book import InLine, QuotaBook
from plansurvive.plans.errors import PlanError
from plansurvive.workflows.keeper import RETRY, Keeper, message_of, state_of

_TIMEOUT = timedelta(seconds=30)


@workflow.defn(name="QuotaWorkflow", failure_exception_types=[PlanError, ValidationError])
class QuotaWorkflow(Keeper):
    """The line of plans with one label."""

    looks_for = "look for plans that have ended"
    book: QuotaBook

    @workflow.init
    def __init__(self, *arguments: Any) -> None:
        super().__init__()
        self.book = QuotaBook.model_validate(state_of(arguments))

    @workflow.run
    async def run(self, *_: Any) -> None:
        """Give places to the first in the line until nobody is left."""
        await self.keep()

    @workflow.signal(description="Sent by plans: they ask for a place.")
    def ask(self, *arguments: Any) -> None:
        """Put a plan into the line. What cannot be read is left out."""
        message = message_of(QuotaRequest, arguments)
        if message is not None:
            self.changed(newcomer=self.book.ask(message))

    @workflow.signal(description="Sent by plans: they need their place no more.")
    def release(self, *arguments: Any) -> None:
        """Take a plan out of the line."""
        message = message_of(QuotaRelease, arguments)
        if message is not None and self.book.release(message):
            self.changed()

    @workflow.query(description="Who has a place, and who waits for one, in this order.")
    def places(self) -> dict[str, Any]:
        """The line, a QuotaRow."""
        return self.book.row.model_dump(mode="json")

    async def tell(self) -> None:
        """Give free places, and tell plans that they have one; one that has ended leaves the line."""
        while untold := self.book.grant():
            await asyncio.gather(*(self._tell_one(each) for each in untold))

    async def _tell_one(self, each: InLine) -> None:
        each.told = True
        handle = workflow.get_external_workflow_handle(each.request.workflow_id)
        try:
            message = QuotaGranted(token=each.request.token)
            await handle.signal("quota_place", message.model_dump(mode="json"))
        except ApplicationError:  # it has ended
            self.book.drop([each.request.token])

    async def look(self) -> None:
        """Ask which of those that have a place have ended."""
        over: list[str] = await workflow.execute_activity(
            "ended_of_quota", self.book.holders, result_type=list[str], start_to_close_timeout=_TIMEOUT,
            retry_policy=RETRY, summary=f"do the plans with {self.book.label} still run?"[:200],
        )  # fmt: skip
        self.book.drop(over)
