"""Having the LLM write a plan: started like any other plan, drafted by its worker, then in review."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from temporalio.client import Client

from client import ids, runs
from client.history_feed import changes
from client.start import Started, launch
from plans.errors import PlanError
from plans.run import Options, PlanStatus
from plans.views.markdown import line
from plans.views.models import PlanView
from workflows.search_attributes import first

MAX_REQUEST = 20_000


async def make(
    client: Client,
    request: str,
    *,
    options: Options | None = None,
    fields: dict[str, Any] | None = None,
    plan_id: str | None = None,
    queue: str = "plans",
) -> Started:
    """Start the drafting of a plan; returns at once. `options.review`: it waits for `begin` when it is written.

    `fields` are those of the plan that the LLM does not set: defaults, budget, maxParallel. Raises PlanExists,
    BadPlanId, NotConnected, and PlanError BAD_REQUEST for an empty or endless request.
    """
    if not request.strip() or len(request) > MAX_REQUEST:
        raise PlanError(f"say what the plan is to achieve, in 1 to {MAX_REQUEST} characters", "BAD_REQUEST")
    chosen = ids.invented(request) if plan_id is None else ids.checked(plan_id)
    given = (options or Options(review=True)).model_dump(mode="json", exclude_none=True)
    title = line(request)
    started = {"request": request, "plan": {**(fields or {}), "id": chosen}, "options": given}
    shown = {"memo": {"title": title[:1_000], "steps": 0}, "static_summary": title[:100]}
    return await launch(client, started, chosen, queue, shown, first(PlanStatus.DRAFT.value, ""))


async def drafted(client: Client, plan: str, say: Callable[[str], None] = lambda _: None) -> PlanView:
    """The plan's view as soon as the LLM has written it, or has given up: then it has `problems`.

    Raises InvalidPlan when the worker cannot work for it at all.
    """
    async for _ in changes(client, plan, say):
        try:
            view = await runs.show_patiently(client, plan, say)
        except PlanError as error:
            if error.code != "QUERY_FAILED":
                raise
            break
        if view.status is not PlanStatus.DRAFT:
            return view
    await runs.wait(client, plan)
    return await runs.show_patiently(client, plan, say)
