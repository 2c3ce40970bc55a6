"""The earlier run that `plan run --since` names."""

from __future__ import annotations

from temporalio.client import Client

from plansurvive.client.ids import plan_id
from plansurvive.client.listing import list_plans
from plansurvive.client.rpc import describe

LAST = "last"
"""Instead of an id: the newest run of a plan with the same title."""
MAX_LOOKED_AT = 1_000
"""Plans that are looked at for it, the newest first."""


async def earlier_run(client: Client, since: str, title: str) -> str:
    """The id of that plan; empty if `last` finds none. Raises PlanNotFound, BadPlanId, NotConnected."""
    if since != LAST:
        await describe(client, since)
        return plan_id(since)
    looked_at = 0
    async for listed in list_plans(client):
        looked_at += 1
        if listed.title == title:
            return listed.plan_id
        if looked_at == MAX_LOOKED_AT:
            break
    return ""
