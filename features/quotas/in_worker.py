"""The activities of quotas: start the keeper of a label with a request, and ask which of its holders have ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from temporalio import activity
from temporalio.client import Client

from plansurvive.activities.feature import InWorker
from plansurvive.activities.lifecycle import keeper
from plansurvive.features.quotas.model import QuotaRequest, Quotas
from plansurvive.features.quotas.quotas_file import read_quotas
from plansurvive.plans.activity_io import CheckRequest
from plansurvive.plans.model.parts import Part
from plansurvive.runtime.settings import Settings

TOGETHER = 20
"""Plans that are asked about at the same time."""


@activity.defn(name="ask_for_place")
async def ask_for_place(request: QuotaRequest) -> None:
    """Send the request to the keeper of the label, which begins if there is none. Asking again changes nothing."""
    queue, summary = activity.info().task_queue, f"plans with the label {request.label}"
    await keeper.ask(activity.client(), "QuotaWorkflow", request.key, request, queue=queue, summary=summary)


@activity.defn(name="ended_of_quota")
async def ended_of_quota(holders: list[QuotaRequest]) -> list[str]:
    """The tokens of the plans that have ended, however they did. Raises RPCError, which is retried."""
    found: list[str] = []
    for first in range(0, len(holders), TOGETHER):
        some = holders[first : first + TOGETHER]
        over = await asyncio.gather(*(keeper.has_ended(activity.client(), each) for each in some))
        found += [each.token for each, ended in zip(some, over, strict=True) if ended]
    return found


class Worker(InWorker):
    """Quotas in a worker: its activities, and what quotas.toml said when it started."""

    feature = "quotas"

    def __init__(self, client: Client, settings: Settings, fault: Callable[[str], None]) -> None:
        """Raises SettingError for a bad quotas.toml."""
        super().__init__(client, settings, fault)
        self._labels = dict(read_quotas(settings))

    def activities(self) -> Sequence[Callable[..., object]]:
        """`ask_for_place` and `ended_of_quota`."""
        return ask_for_place, ended_of_quota

    def facts(self, _: CheckRequest) -> Part | None:
        """How many plans at a time a label may have; None without quotas.toml."""
        return Quotas(labels=self._labels) if self._labels else None


IN_WORKER = Worker
