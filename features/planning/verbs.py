"""Has the LLM write a plan, which is started like any other and then is in review; and revise one that is open.

edited = await verbs.regenerate(client, "p", "write the tests first")
"""

from __future__ import annotations

from typing import Any

from temporalio.client import Client

from plansurvive.client import ids
from plansurvive.client.decisions import authored
from plansurvive.client.differences.plan_diff import PlanDiff, plan_diff, plan_of
from plansurvive.client.priority import priority_of
from plansurvive.client.rpc import plan_file
from plansurvive.client.updates import update
from plansurvive.client.verbs.start import Started, launch
from plansurvive.features.planning.messages import Regenerate
from plansurvive.plans.errors import PlanError
from plansurvive.plans.execution.messages import Via
from plansurvive.plans.execution.revision import Edited
from plansurvive.plans.run import Options, PlanStatus
from plansurvive.plans.text.safe_text import line
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


async def regenerate(
    client: Client, plan: str, feedback: str, *, expect_version: int | None = None, by: str = "", via: Via = "",
    verified: bool = False,
) -> Edited:  # fmt: skip
    """Have the LLM revise the steps that have not started; the plan is in review afterwards. Waits for the LLM.

    Raises as `edit`, and PlanErrors with LLM_ codes, which leave the plan unchanged.
    """
    message = Regenerate(feedback=feedback, expect_version=expect_version, **authored(by, via, verified=verified))
    given = message.model_dump(mode="json", exclude_unset=True, exclude_none=True)
    answer = await update(client, plan, "regenerate", given)
    return Edited.model_validate(answer)


async def regenerated(
    client: Client, plan: str, feedback: str, *, expect_version: int | None = None, by: str = ""
) -> tuple[Edited, PlanDiff]:
    """As `regenerate`, and what differs between the plan before and the plan after, step by step."""
    before = plan_of(await plan_file(client, plan))
    edited = await regenerate(client, plan, feedback, expect_version=expect_version, by=by)
    return edited, plan_diff(before, plan_of(await plan_file(client, plan)))
