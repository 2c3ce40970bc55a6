"""The later runs of a plan: `x-r2`, `x-r3` and so on, found by their ids. They need no worker."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from temporalio.client import Client

from plansurvive.client.errors import PlanNotFound
from plansurvive.client.rpc import describe, memo_of
from plansurvive.plans.execution.resume import run_id

MAX_RUNS = 1_000
"""Maximum runs of one plan."""


async def later_runs(client: Client, base: str) -> AsyncIterator[tuple[str, Any]]:
    """The later runs of a plan in order, each with the id of the run it resumes."""
    for number in range(2, MAX_RUNS):
        name = run_id(base, number)
        try:
            memo = await memo_of(await describe(client, name))
        except PlanNotFound:
            return
        yield name, memo.get("resumes")
