"""`/policy`: what `plan policy check`, `test` and `report` (over seven days) say, on the machine of the page.

And the form with which a person takes a decision of theirs back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from plansurvive.client.access import Role, needs, person_of
from plansurvive.client.access.forms import form_of, text_of
from plansurvive.client.errors import NoWorker, PlanClosed
from plansurvive.client.local_tools import known_tools
from plansurvive.client.page.pages import done, page, site_of
from plansurvive.client.requests.roots import Roots
from plansurvive.features.policy import verbs
from plansurvive.features.policy.consent import in_words as who_must
from plansurvive.features.policy.policy_file import file_of
from plansurvive.features.policy.policy_file import read as read_policy
from plansurvive.features.policy.policy_file import text_of as text_of_policy
from plansurvive.features.policy.reading import reported
from plansurvive.features.policy.reporting import in_words
from plansurvive.features.policy.rule import Policy
from plansurvive.features.policy.trying import Trial
from plansurvive.plans.errors import PlanError, Refused
from plansurvive.plans.model import ToolSpec
from plansurvive.runtime.settings import SettingError

SINCE = timedelta(days=7)


async def shown(request: Request) -> Response:
    """The policy of this machine, and the report."""
    service = site_of(request)
    settings, now = service.settings, datetime.now(UTC)
    try:
        text, problem = await asyncio.to_thread(text_of_policy, settings), ""
    except SettingError as error:
        text, problem = None, str(error)
    reading = read_policy(text, now) if text is not None else None
    tools = await asyncio.to_thread(known_tools, settings)
    found = await reported(await service.client(), settings.task_queue, now - SINCE, tools)
    tried: dict[str, Any] = {"tool": "", "args": "{}", "as": "", "problem": "", "reason": ""}
    if name := request.query_params.get("tool", ""):
        tried |= _tried(request, name, reading.policy if reading else None, tools)
    mistakes = [problem] if problem else [str(each) for each in reading.mistakes] if reading else []
    return page(
        request, "policy/policy.html", nav="", file=str(file_of(settings)), mistakes=mistakes,
        policy=reading.policy if reading else None, lines=list(in_words(found)),
        tools=sorted(tools), tried=tried,
    )  # fmt: skip


def _tried(request: Request, tool: str, policy: Policy | None, tools: Mapping[str, ToolSpec]) -> dict[str, Any]:
    """What was typed to try a call, and what the policy makes of it, or what is wrong with it."""
    given = request.query_params
    trial = Trial(tool, given.get("args", "").strip() or "{}", given.get("as", "").strip())
    typed: dict[str, Any] = {"tool": tool, "args": trial.args, "as": trial.starter}
    try:
        found = trial.under(policy, tools, str(Roots.of(site_of(request).settings).paths[0]))
    except PlanError as error:
        return {**typed, "problem": error.message}
    return {
        **typed,
        "decide": found.verdict.decide,
        "reason": found.verdict.reason,
        "who": list(map(who_must, found.terms)),
    }


@needs(Role.APPROVER)
async def withdraw(request: Request) -> Response:
    """Take back what the person has decided about a step; the page of the step says what came of it."""
    form, plan = await form_of(request), request.path_params["plan_id"]
    step, comment = text_of(form, "step"), text_of(form, "comment").strip()[:2_000]
    client = await site_of(request).client()
    try:
        said = await verbs.withdraw(client, plan, step, comment=comment, **person_of(request).author)
    except (Refused, PlanClosed, NoWorker) as error:
        said = error.message
    return done(request, f"/plans/{quote(plan, safe='')}/steps/{quote(step, safe='')}", said)


routes = [Route("/policy", shown), Route("/plans/{plan_id}/withdraw", withdraw, methods=["POST"])]
