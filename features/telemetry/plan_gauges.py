"""How plans stand, asked of the server at intervals: open plans by status, how many await a decision, the oldest one.

Statuses and counts come from the server's index, so they need no plan to be loaded. When a decision began to be awaited
is known by its plan alone: each plan is asked once for what it awaits, ASKED at most per look, those begun first. So
after the start of a worker with many waiting plans, the oldest may be found only some looks later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from temporalio.client import Client, WorkflowExecution, WorkflowQueryFailedError
from temporalio.common import SearchAttributeKey
from temporalio.service import RPCError

from plansurvive.features.telemetry.instruments import Instruments
from plansurvive.features.telemetry.trace_context import read_time
from plansurvive.runtime.search_attributes import OF_NO_PLAN

EVERY_SECONDS = 15.0
ASKED = 20
"""Plans that are asked in one look."""
LISTED = 1_000
"""Plans awaiting a decision that are looked at."""
PATIENCE = timedelta(seconds=5)
OPEN = ("draft", "review", "running", "paused")
_PENDING = SearchAttributeKey.for_keyword_list("PlanPending")
_RUNNING = "WorkflowType = 'PlanWorkflow' AND ExecutionStatus = 'Running'"
_AWAITING = (
    "WorkflowType IN ('PlanWorkflow', 'AgentWorkflow', 'CodingAgentWorkflow')"
    " AND ExecutionStatus = 'Running' AND PlanPending IS NOT NULL"
)
_BY_THEMSELVES = f"{_AWAITING} AND {OF_NO_PLAN}"
"""Without what runs for steps: a plan lists what is asked below it as well, and counts once."""


class PlanGauges:
    """Sets the gauges of one worker process. Other workers of the namespace give the same figures: take the maximum."""

    def __init__(self, client: Client, instruments: Instruments) -> None:
        self._client, self._instruments = client, instruments
        self._since: dict[tuple[str, tuple[str, ...]], datetime] = {}

    async def keep(self, every: float = EVERY_SECONDS) -> None:
        """Look every few seconds; a server that does not answer leaves the last figures."""
        while True:
            with suppress(RPCError):
                await self.look()
            await asyncio.sleep(every)

    async def look(self) -> None:
        """Set the gauges once. Raises RPCError."""
        counts = await asyncio.gather(
            *(self._client.count_workflows(f"{_RUNNING} AND PlanStatus = '{status}'") for status in OPEN)
        )
        waiting = [each async for each in self._client.list_workflows(_AWAITING, limit=LISTED)]
        number = (await self._client.count_workflows(_BY_THEMSELVES)).count
        await self._ask(waiting)
        now = datetime.now(UTC)
        oldest = max(((now - since).total_seconds() for since in self._since.values()), default=0.0)
        self._instruments.standing(
            {status: found.count for status, found in zip(OPEN, counts, strict=True)}, number, oldest
        )

    async def _ask(self, waiting: list[WorkflowExecution]) -> None:
        """Learn since when the plans wait that were not asked yet about what they await now."""
        named = {(each.id, tuple(each.typed_search_attributes.get(_PENDING) or ())): each for each in waiting}
        self._since = {key: since for key, since in self._since.items() if key in named}
        new = sorted((each.start_time, key) for key, each in named.items() if key not in self._since)[:ASKED]
        found = await asyncio.gather(*(self._oldest(key[0]) for _, key in new))
        self._since |= {key: since for (_, key), since in zip(new, found, strict=True) if since is not None}

    async def _oldest(self, workflow_id: str) -> datetime | None:
        try:
            view = await self._client.get_workflow_handle(workflow_id).query(
                "plan", {"brief": True}, rpc_timeout=PATIENCE
            )
        except (RPCError, WorkflowQueryFailedError):
            return None  # without a worker, or just ended
        pending = view.get("pending") if isinstance(view, Mapping) else None
        times = [time for each in _objects(pending) if (time := read_time(_with_zone(each.get("since")))) is not None]
        return min(times, default=None)


def _objects(found: Any) -> list[Mapping[str, Any]]:
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []


def _with_zone(text: Any) -> Any:
    return f"{text[:-1]}+00:00" if isinstance(text, str) and text.endswith("Z") else text
