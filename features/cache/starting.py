"""`--since` and `--no-cache` of the commands that start a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from temporalio.client import Client

from plansurvive.client.feature import Choice
from plansurvive.features.cache.earlier_run import earlier_run
from plansurvive.features.cache.model import CacheChoice
from plansurvive.plans.errors import PlanError
from plansurvive.plans.text.safe_text import line
from plansurvive.runtime.errors import NotConnected


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
