"""One step, as a page or in the drawer beside the list: its call, its value, attempts, decision, files; and what is
inside a block or loop."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from plansurvive.apps.web.common.rendering import page
from plansurvive.apps.web.common.service import service_of
from plansurvive.apps.web.plans.rows import Listed, listed
from plansurvive.client import runs
from plansurvive.client.children.naming import the_step
from plansurvive.client.feature import remarks_of
from plansurvive.client.ids import plan_id
from plansurvive.client.runs import PlanView
from plansurvive.client.watchers.watcher import Watcher
from plansurvive.features.agents.model.as_plan import TOOL as AGENT
from plansurvive.features.agents.model.order import agent_of_step
from plansurvive.features.coding_agents.model import TOOL as CODING_AGENT
from plansurvive.plans.errors import PlanError, ToolError
from plansurvive.plans.flow.ids import template_of
from plansurvive.plans.text.safe_text import json_text
from plansurvive.plans.usage import Usage
from plansurvive.plans.views.models import ResultView, StepView, ToolCallView
from plansurvive.plans.views.steps.call_text import value_rows
from plansurvive.plans.views.steps.row import shortened, verdicts
from plansurvive.runtime.connect import storage
from plansurvive.runtime.value_store import ValueStore

INSIDE = 100
"""Steps inside a block or loop that are listed at a time."""
VALUE_CHARACTERS = 4_000
"""Of a value, and of an argument, that are shown; the whole value is one click away."""
CALLS = 50
"""Tool calls that are listed, the newest ones."""


async def show(request: Request) -> Response:
    """One step. With `drawer`, only the part that goes beside the list."""
    watcher = await service_of(request).watcher(request.path_params["plan_id"])
    context = await _context(watcher, request.path_params["step_id"])
    in_drawer = "drawer" in request.query_params and request.headers.get("hx-request") == "true"
    return page(request, "_step.html" if in_drawer else "step.html", nav="plans", tab="", drawer=in_drawer, **context)


async def inside(request: Request) -> Response:
    """What is inside a block or loop, some at a time."""
    plan, step_id = request.path_params["plan_id"], request.path_params["step_id"]
    since = request.query_params.get("since", "0")
    number = int(since) if since.isascii() and since.isdigit() and len(since) < 9 else 0
    found = await runs.inside(await service_of(request).client(), plan, step_id, since=number, limit=INSIDE)
    rows: list[Listed] = [listed(step) for step in found.steps]
    whole = "whole" in request.query_params or request.headers.get("hx-request") != "true"
    return page(request, "inside.html" if whole else "_inside.html", nav="plans", tab="", plan=plan_id(plan),
                step_id=step_id, rows=rows, next=found.next, whole=whole)  # fmt: skip


async def value(request: Request) -> Response:
    """The whole value of a step as JSON text, from the storage if it is too large for history."""
    service, step_id = service_of(request), request.path_params["step_id"]
    result = (await the_step(await service.client(), request.path_params["plan_id"], step_id)).result
    if result is None or not result.ok:
        raise PlanError(f"step '{step_id}' has no value", "NO_VALUE")
    content = result.value
    if result.large is not None:
        try:
            content = await ValueStore(storage(service.settings)).get(result.large)
        except ToolError as error:
            raise PlanError(f"the value is stored where this machine cannot read it: {error.message}",
                            error.code) from error  # fmt: skip
    return PlainTextResponse(json_text(json.dumps(content, ensure_ascii=False, indent=2, default=str)))


async def _context(watcher: Watcher, step_id: str) -> dict[str, Any]:
    """What the templates of a step show."""
    view = await watcher.first()
    step, whole = await the_step(watcher.client, watcher.plan, step_id), await watcher.whole()
    top = whole.step(template_of(step_id).partition(".")[0]) if whole.step(step_id) is None else whole.step(step_id)
    own = whole.step(step_id)
    calls = _calls(whole, top, step_id)
    name = view.id or plan_id(watcher.plan)
    return {
        "plan": name, "step": step, "own": own, "listed": listed(step, watcher.live.get(step_id)),
        "verdicts": verdicts(step.decision, step.answer),
        "calls": [(call, _rows(call.args) if call.agent else []) for call in calls[-CALLS:]],
        "more_calls": max(0, len(calls) - CALLS) + (own.more_calls if own else 0),
        "args": _rows(step.args or (own.args if own else {}) or {}), "value": shown_value(step.result),
        "log": [each for each in whole.log if each.step_id == step_id][-30:], "view": view,
        "why": remarks_of(step.result) if step.result else [],
        "agent": _agent_of(name, step.id, step.tool, calls),
        "used": _used(view.tokens.by_step.get(step.id, 0), view.tokens.cost_by_step.get(step.id, {})),
    }  # fmt: skip


def _agent_of(plan: str, step_id: str, tool: str, calls: Sequence[ToolCallView]) -> str:
    """The id of the agent that works on a step; empty if none does."""
    named = [call.agent for call in calls if call.agent]
    return (named[-1] if named else agent_of_step(plan, step_id, 1)) if tool in (AGENT, CODING_AGENT) else ""


def _used(tokens: int, cost: dict[str, float]) -> str:
    """What a step has used, and what its agent says that this cost: `1,280 tokens, 0.02 USD`."""
    return ", ".join(filter(None, [f"{tokens:,} tokens" if tokens else "", Usage(cost=cost).costs]))


def shown_value(result: ResultView | None) -> tuple[str, bool]:
    """The value of a step as text, and whether that is all of it."""
    if result is None or not result.ok:
        return "", True
    text, length = shortened(result.value, VALUE_CHARACTERS, indent=2)
    return text, length <= VALUE_CHARACTERS and not result.cut


def _rows(args: dict[str, Any]) -> list[str]:
    """The arguments as in an approval, each cut to what a page has room for."""
    found = []
    for name, each in args.items():
        text = "\n".join(value_rows(name, each))
        left = len(text) - VALUE_CHARACTERS
        found.append(text[:VALUE_CHARACTERS] + (f"\n… {left:,} more characters" if left > 0 else ""))
    return found


def _calls(whole: PlanView, top: StepView | None, step_id: str) -> list[ToolCallView]:
    """The tool calls of a step, or of one instance inside it, oldest first."""
    listed = whole.step_tool_history.get(str(top.order), []) if top is not None else []
    return [call for call in listed if call.step_id in (None, step_id) or top is None or top.id == step_id]


routes = [
    Route("/plans/{plan_id}/inside/{step_id:path}", inside),
    Route("/plans/{plan_id}/value/{step_id:path}", value),
    Route("/plans/{plan_id}/steps/{step_id:path}", show),
]
