"""The ledger and the records of one worker: a line for each plan that begins, a record of each that has ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager

from temporalio import activity

from plansurvive.activities.feature import InWorker
from plansurvive.activities.values.redaction import Seen
from plansurvive.features.audit.keeper import Keeper
from plansurvive.features.audit.ledger import Ledger
from plansurvive.plans.activity_io import CheckRequest


class Worker(InWorker):
    """Keeps the records of a worker's state directory."""

    feature = "audit"

    @asynccontextmanager
    async def running(
        self, own: Collection[str], say: Callable[[str], None], masked: Sequence[Seen], *, first: bool  # noqa: ARG002
    ) -> AsyncIterator[None]:  # fmt: skip
        """Writes the records of what has ended; of several processes, the first one does."""
        keeping = asyncio.create_task(Keeper(self.client, self.settings).keep()) if first else None
        try:
            yield
        finally:
            if keeping is not None:
                keeping.cancel()

    def before_check(self) -> Callable[[CheckRequest], Awaitable[None]]:
        """Writes into the ledger that a plan has begun. A full disk does not keep it from that.

        Raises SettingError for a key that others can read.
        """
        ledger, turn = Ledger.of(self.settings), asyncio.Lock()

        async def note(_: CheckRequest) -> None:
            info = activity.info()
            try:
                async with turn:  # else threads that others need would poll for the lock of the file
                    await asyncio.to_thread(ledger.began, info.workflow_id or "", info.workflow_run_id or "")
            except OSError as error:
                activity.logger.warning("the start of the plan could not be written into the ledger: %s", error)

        return note


IN_WORKER = Worker
