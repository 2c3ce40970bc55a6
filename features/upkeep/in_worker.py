"""The activity `prune`: what `plan prune` does, with the worker's own client and state directory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

from temporalio import activity
from temporalio.exceptions import ApplicationError

from plansurvive.activities.beating import beating
from plansurvive.activities.feature import InWorker
from plansurvive.features.upkeep.model import PruneOrder
from plansurvive.features.upkeep.settings import UpkeepSettings
from plansurvive.features.upkeep.sweep import Pruned, PruneRefused, prune


class Worker(InWorker):
    """Prunes the state directory of a worker."""

    feature = "upkeep"

    def activities(self) -> Sequence[Callable[..., object]]:
        """The activity `prune`."""
        return (self.prune,)

    @activity.defn(name="prune")
    async def prune(self, order: PruneOrder) -> Pruned:
        """Remove what no plan needs. Fails with PRUNE_REFUSED, for good, if that cannot be told.

        Anybody who reaches the server can send an order, so it does no harm: the settings say the least age, and audit
        records stay.
        """
        least = timedelta(hours=self.settings.of(UpkeepSettings).prune_hours)
        try:
            async with beating():
                return await prune(
                    self.client, self.settings, older_than=max(least, timedelta(seconds=order.older_than)),
                    records=max(least, timedelta(seconds=order.records)) if order.records else None,
                    features=self.others.unused, kept=self.others.records, leftovers=self.others.leftovers,
                )  # fmt: skip
        except PruneRefused as error:
            raise ApplicationError(error.message, type=error.code, non_retryable=True) from error


IN_WORKER = Worker
