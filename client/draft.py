"""Has the LLM write a plan: it is started like any other, its worker drafts it, and then it is in review."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from temporalio.client import Client

from plansurvive.client import ids
from plansurvive.client.history_feed import changes
from plansurvive.client.priority import priority_of
from plansurvive.client.rpc import ask_view, has_ended, patiently
from plansurvive.client.start import Started, launch
from plansurvive.client.summary import wait
from plansurvive.plans.errors import PlanError
from plansurvive.plans.run import ENDED, Options, PlanStatus
from plansurvive.plans.views.models import PlanView
from plansurvive.plans.views.safe_text import line
from plansurvive.workflows.search_attributes import first

MAX_REQUEST = 20_000
"""Maximum characters of a request."""


async def make(
    client: Client,
    request: str,
    *,
    options: Options | None = None,
    fields: dict[str, Any] | None = None,
    plan_id: str | None = None,
    queue: str = "plans",
) -> Started:
    """Start drafting a plan from a request in plain words; returns at once.

    `options` defaults to `Options(review=True)`: once drafted, the plan waits for `begin`. `fields` are the plan's
    fields that the LLM does not set (`defaults`, `budget`, `maxParallel`), as in a plan file. `plan_id` and `queue` as
    for `start`. Raises PlanExists, BadPlanId, NotConnected, and PlanError (BAD_REQUEST) if the request is empty or
    longer than 20,000 characters.
    """
    if not request.strip() or len(request) > MAX_REQUEST:
        raise PlanError(f"describe what the plan should achieve, in 1 to {MAX_REQUEST} characters", "BAD_REQUEST")
    given = (options or Options(review=True)).model_dump(mode="json", exclude_none=True)
    title = line(request)
    limit = {"timeout": options.timeout} if options and options.timeout is not None else {}
    shown = {"memo": {"title": title[:1_000], "steps": 0, **limit}, "static_summary": title[:100]}
    index, priority = first(PlanStatus.DRAFT.value, ""), priority_of(None, options)

    async def begin(chosen: str) -> Started:
        started = {"request": request, "plan": {**(fields or {}), "id": chosen}, "options": given}
        return await launch(client, started, chosen, queue, shown, index, priority)

    return await (ids.with_generated(request, begin) if plan_id is None else begin(ids.checked(plan_id)))


async def drafted(client: Client, plan: str, say: Callable[[str], None] = lambda _: None) -> PlanView:
    """Wait until the LLM has drafted the plan or has given up; returns its view. `problems` says what is wrong with it.

    Server and worker may be unavailable meanwhile; `say` is called then. Raises InvalidPlan if the worker rejected it.
    """
    async for _ in changes(client, plan, say):
        try:
            view = await _view(client, plan, say)
        except PlanError as error:
            # A plan that was refused at its start answers no queries: its result raises the reason.
            if error.code != "QUERY_FAILED" or not await has_ended(client, plan):
                raise
            break
        if view.status in ENDED and view.problems:
            break  # refused: its result raises the reason
        if view.status is not PlanStatus.DRAFT:
            return view
    await wait(client, plan)
    return await _view(client, plan, say)


async def _view(client: Client, plan: str, say: Callable[[str], None]) -> PlanView:
    return await patiently(client, plan, say, lambda: ask_view(client, plan, PlanView, "plan"))
