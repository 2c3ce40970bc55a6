"""`--since` and `--no-cache` of the commands that start a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from temporalio.client import Client

from plansurvive.client.feature import Choice
from plansurvive.client.ids import plan_id
from plansurvive.client.listing import list_plans
from plansurvive.client.rpc import describe
from plansurvive.features.cache.model import CacheChoice
from plansurvive.plans.errors import PlanError
from plansurvive.plans.text.safe_text import line
from plansurvive.runtime.errors import NotConnected

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


def choice(given: Mapping[str, Any]) -> Choice | None:
    """What the options say; None: nothing. Raises PlanError BAD_USAGE."""
    since, fresh = given.get("since"), "no_cache" in given
    if since and fresh:
        raise PlanError("--since takes results of an earlier run, and --no-cache none; leave one out", "BAD_USAGE")
    if fresh:
        return _fresh
    return _Since(since) if since else None


async def _fresh(client: Client | None, title: str, say: Callable[[str], None]) -> CacheChoice:  # noqa: ARG001
    return CacheChoice(cache="fresh")


@dataclass(frozen=True)
class _Since:
    """The results of one run: a plan's id, or `last`."""

    since: str

    async def __call__(self, client: Client | None, title: str, say: Callable[[str], None]) -> CacheChoice:
        """Raises NotConnected without a server, PlanNotFound, BadPlanId."""
        if client is None:
            raise NotConnected("--since needs the server that has the earlier run; `plan up` starts it")
        found = await earlier_run(client, self.since, title)
        if not found:
            say(f"No earlier run of a plan called '{line(title)}': every step runs.")
        return CacheChoice(cache="on", since=found)
