"""Asks the person during a call, for clients without the tasks extension, what a plan awaits.

A client of 2026-07-28 is answered with what to ask, and calls again with the replies (InputRequiredResult); one of an
earlier version is asked while its call waits (`elicitation/create`). In neither case can the agent fill in the form:
replies are no arguments of a tool. A reply counts only with the state of the round that asked for it, also after a
restart of this process (`apps.mcp.common.rounds`); its key names what is decided on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio
from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
from mcp.types import ElicitRequest, InputRequiredResult
from temporalio.client import WorkflowExecutionStatus

from plansurvive.apps.mcp.common.host import Author, Host
from plansurvive.apps.mcp.common.rounds import asked_keys, asked_state, round_key
from plansurvive.apps.mcp.common.rules import Deciding, can_ask
from plansurvive.apps.mcp.decisions.answers import settle
from plansurvive.apps.mcp.decisions.open import Waiting, waiting
from plansurvive.client.requests.connected import Connected
from plansurvive.client.rpc import ask_view, describe
from plansurvive.plans.views.models import BriefView
from plansurvive.plans.views.queries import BRIEF

MODERN = "2026-07-28"
"""First version of the protocol in which a server asks by answering; dates compare as texts."""
PATIENCE = 300.0
"""Seconds a person may take to fill in a form while a call waits."""
MAX_ROUNDS = 10

Request = Context[Any, Any]


async def ask_person(host: Host, ctx: Request, here: Connected, plan: str) -> InputRequiredResult | list[str]:
    """What the client is to ask the person about a plan; or, once there is nothing more to ask, what was decided.

    Raises as `client.rpc.ask`.
    """
    deciding, author = deciding_of(host, ctx), person_of(host, ctx)
    said = list[str]()
    asked = asked_keys(ctx.request_state)
    if ctx.input_responses and asked:
        given = {key: each.model_dump(mode="json") for key, each in ctx.input_responses.items() if key in asked}
        said = await replied(here, plan, given, deciding, author, again=True)
    if ctx.request_context.protocol_version >= MODERN:
        found = await _waiting(here, plan, deciding, again=not asked)
        if not found.asked:
            return said
        round_key(host.settings)  # says what is wrong with it, which the library would only log
        requests = {each.key: ElicitRequest.model_validate(each.ask.request(each.replied.why)) for each in found.asked}
        return InputRequiredResult(input_requests=dict(requests), request_state=asked_state(requests))
    for turn in range(MAX_ROUNDS):
        found = await _waiting(here, plan, deciding, again=turn == 0)
        if not found.asked or not ctx.session.can_send_request:
            break
        first, params = found.asked[0], found.asked[0].ask.request(found.asked[0].replied.why)["params"]
        reply = await _pushed(ctx, params)
        if reply is None:
            break
        said += await settle(here.client, here.settings, [first], {first.key: reply}, author)
    return said


def deciding_of(host: Host, ctx: Request) -> Deciding:
    """What the person may decide through the client that makes a request."""
    can = can_ask(ctx.session.client_capabilities) and host.caller(ctx).may_decide
    return host.deciding if can else "elsewhere"


def person_of(host: Host, ctx: Request) -> Author:
    """The author of what the person decides through the client. That they did, nobody can verify."""
    return {**host.caller(ctx).author, "verified": False}


async def replied(
    here: Connected, plan: str, responses: Mapping[str, Any], deciding: Deciding, author: Author, *, again: bool
) -> list[str]:
    """Decide what the person has replied, as far as it is asked now. Returns sentences about it. Raises as `ask`.

    `again`: the person was also asked what they had put off before.
    """
    found = await _waiting(here, plan, deciding, again=again)
    return await settle(here.client, here.settings, found.asked, responses, author)


async def _waiting(here: Connected, plan: str, deciding: Deciding, *, again: bool) -> Waiting:
    description = await describe(here.client, plan)
    if description.status is not WorkflowExecutionStatus.RUNNING:
        return Waiting()
    view = await ask_view(here.client, plan, BriefView, "plan", BRIEF)
    return await waiting(here.client, here.settings, plan, view, description.task_queue, deciding, again=again)


async def _pushed(ctx: Request, params: Mapping[str, Any]) -> dict[str, Any] | None:
    """The reply to a request that is sent while the call waits; None if there is none."""
    try:
        with anyio.fail_after(PATIENCE):
            found = await ctx.session.elicit_form(params["message"], params["requestedSchema"], ctx.request_id)
    except (TimeoutError, MCPError):
        return None
    reply: dict[str, Any] = found.model_dump(mode="json")
    return reply
