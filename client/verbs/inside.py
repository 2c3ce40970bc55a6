"""Reads what is inside a block or loop of a plan, in pages: a loop may have 20,000 items."""

from __future__ import annotations

from collections.abc import AsyncIterator

from temporalio.client import Client

from plansurvive.client.rpc import ask_view
from plansurvive.plans.errors import PlanError
from plansurvive.plans.views.models import InnerStep, InsidePage

PAGE = 500
"""Steps of one query."""


async def inside(
    client: Client, plan: str, step_id: str, *, since: int = 0, limit: int = 200, direct: bool = False,
    unfinished: bool = False,
) -> InsidePage:  # fmt: skip
    """The steps inside a block or loop, or those that fit a pattern such as `resize[*].thumb`, with their values.

    `since`: the number to begin with (`InsidePage.next`); `direct`: only the items, not the steps inside them;
    `unfinished`: without those that are completed or skipped (`InsidePage.done`). Raises PlanError UNKNOWN_STEP if the
    plan has no such step, or it has not started.
    """
    asked = {"stepId": step_id, "since": since, "limit": limit, "direct": direct, "unfinished": unfinished}
    try:
        return await ask_view(client, plan, InsidePage, "inside", asked)
    except ValueError:  # an empty answer
        text = f"the plan has no step '{step_id}', or it has not started; `plan show` lists its steps"
        raise PlanError(text, "UNKNOWN_STEP") from None


async def all_inside(client: Client, plan: str, step_id: str) -> AsyncIterator[InnerStep]:
    """Every step inside a block or loop. Raises as `inside`."""
    since: int | None = 0
    while since is not None:
        page = await inside(client, plan, step_id, since=since, limit=PAGE)
        for step in page.steps:
            yield step
        since = page.next
