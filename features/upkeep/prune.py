"""`plan prune` as a function of the client, with what all features keep; `sweep.py` decides what may go."""

from __future__ import annotations

from datetime import timedelta

from temporalio.client import Client

from plansurvive.features.upkeep.sweep import OLDER_THAN, Pruned, PruneRefused
from plansurvive.features.upkeep.sweep import prune as pruned
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.sides import sides

__all__ = ["PruneRefused", "Pruned", "prune"]


async def prune(
    client: Client, settings: Settings, *, older_than: timedelta = OLDER_THAN, dry_run: bool = False,
    records: timedelta | None = None, audit: bool = False,
) -> Pruned:  # fmt: skip
    """Remove what no plan needs, that of features included: see `sweep.py`. Raises PruneRefused."""
    return await pruned(
        client, settings, older_than=older_than, dry_run=dry_run, records=records, audit=audit,
        features=[side.UNUSED for side in sides("upkeep")], kept=[side.RECORDS for side in sides("removal")],
        leftovers=[side.LEFTOVERS for side in sides("leftovers")],
    )  # fmt: skip
