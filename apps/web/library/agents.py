"""`/agents`: the history of agent runs, one run with its tool calls, and the start of an agent. `/tools`: the tools."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import quote

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response
from temporalio.client import Client

from plansurvive.apps.web.common.rendering import page
from plansurvive.apps.web.common.service import service_of
from plansurvive.client import runs
from plansurvive.client.access import Role, needs, person_of
from plansurvive.client.access.forms import form_of, text_of
from plansurvive.client.local_tools import known_tools
from plansurvive.client.page.pages import done, ready
from plansurvive.client.requests.llm import require_llm
from plansurvive.client.requests.roots import Roots
from plansurvive.client.requests.workspaces import named
from plansurvive.features.agents import verbs
from plansurvive.features.agents.history_store import history_store
from plansurvive.features.agents.model import history as history_of
from plansurvive.features.agents.model.history import Entry, History
from plansurvive.features.agents.model.order import AgentOrder, step_args
from plansurvive.plans.definition.output_schema import schema_problem
from plansurvive.plans.definition.schema_keywords import no_keywords
from plansurvive.plans.errors import PlanError
from plansurvive.plans.run import Options
from plansurvive.plans.views.models.agents import AgentLimits
from plansurvive.runtime.settings import Settings

NAV = "agents"
LIMITS = (("calls", "iterations"), ("tokens", "tokens"), ("seconds", "seconds"))
MAX_CALLS = 500
"""Tool calls of a run that are shown, the last ones."""


async def listed(request: Request) -> Response:
    """The runs of agents on this machine, newest first; `show`: only those in progress, or the one to resume."""
    which, plan = request.query_params.get("show", ""), request.query_params.get("plan", "")
    settings = service_of(request).settings
    history, warning = await _history(request, settings)
    chosen = _chosen(history, which, plan)
    return page(
        request, "library/agents.html", nav=NAV, entries=sorted(chosen, key=lambda each: each.started, reverse=True),
        which=which, plan=plan, warning=warning, tools=sorted(known_tools(settings)), roots=Roots.of(settings),
        typed={}, error=None,
    )  # fmt: skip


@needs(Role.OPERATOR)
async def rebuild(request: Request) -> Response:
    """Rebuild the history from the Temporal server."""
    await form_of(request)
    service = service_of(request)
    found = [each for each in await verbs.recorded(await service.client()) if each.agent_type != history_of.PLAN_TYPE]
    await asyncio.to_thread(history_store(service.settings).replace, found)
    return done(request, "/agents", f"Rebuilt the history from {len(found)} agent runs.")


async def show(request: Request) -> Response:
    """One run: its request, tasks, answer, limits and tool calls."""
    name = request.path_params["agent_id"]
    view = await runs.show(await service_of(request).client(), name)
    calls = [call for row in view.step_tool_history.values() for call in row]
    calls.sort(key=lambda call: (call.timestamp is not None, call.timestamp))
    return page(
        request, "library/agent.html", nav=NAV, view=view, agent=view.agent, calls=calls[-MAX_CALLS:],
        left_out=max(0, len(calls) - MAX_CALLS),
    )  # fmt: skip


@needs(Role.OPERATOR)
async def start(request: Request) -> Response:
    """Start an agent; or have its request split into tasks, as a plan in review."""
    form, service = await form_of(request), service_of(request)
    fields = ("request", "tools", "calls", "tokens", "seconds", "schema", "id", "workspace", "asPlan", "yes")
    typed = {name: text_of(form, name).replace("\r\n", "\n") for name in fields}
    try:
        order = order_of(typed)
        client, local, keeps_worker = await ready(request)
        require_llm(service.settings, own_worker=keeps_worker)
        workspace = named(Roots.of(service.settings).workspace(typed["workspace"]), service.settings, local=local)
        options = Options(workspace=workspace, approve_all=bool(typed["yes"]), **person_of(request).starter)
        name = await _begin(client, order, options, typed, service.settings)
    except PlanError as error:
        history, warning = await _history(request, service.settings)
        return page(
            request, "library/agents.html", status=422, nav=NAV, entries=list(history.entries), which="", plan="",
            warning=warning, tools=sorted(known_tools(service.settings)), roots=Roots.of(service.settings),
            typed=typed, error=error,
        )  # fmt: skip
    url = f"/plans/{quote(name, safe='')}/draft" if typed["asPlan"] else f"/agents/{quote(name, safe='')}"
    return done(request, url, f"Started {name}.")


async def tools(request: Request) -> Response:
    """The tools that steps may call, with their arguments."""
    return page(request, "library/tools.html", nav="", tools=list(known_tools(service_of(request).settings).values()))


def order_of(typed: dict[str, str]) -> AgentOrder:
    """The order of a form. Raises PlanError BAD_USAGE."""
    limits = {field: typed[name].strip() for name, field in LIMITS if typed[name].strip()}
    tools = [name for name in typed["tools"].replace(",", " ").split() if name]
    try:
        schema = json.loads(typed["schema"]) if typed["schema"].strip() else None
    except ValueError as error:
        raise PlanError(f"the schema is not JSON: {error}", "BAD_USAGE") from None
    if isinstance(schema, dict) and not schema_problem(schema) and (wrong := no_keywords(schema)):
        raise PlanError(f"the schema: {wrong}", "BAD_USAGE")
    try:
        numbers = {name: float(text) if name == "seconds" else int(text) for name, text in limits.items()}
    except ValueError:
        raise PlanError("the limits are numbers", "BAD_USAGE") from None
    try:
        given: dict[str, Any] = {"request": typed["request"].strip(), "tools": tools or None, "outputSchema": schema}
        return AgentOrder.model_validate({**given, "limits": AgentLimits.model_validate(numbers)})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise PlanError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}", "BAD_USAGE") from None


async def _begin(client: Client, order: AgentOrder, options: Options, typed: dict[str, str], settings: Settings) -> str:
    name = typed["id"].strip() or None
    if not typed["asPlan"]:
        queue = settings.task_queue
        return (await verbs.start_agent(client, order, options=options, agent_id=name, queue=queue)).plan_id
    planned = options.model_copy(update={"review": True, "approve_all": False, "split": step_args(order)})
    started = await runs.make(client, order.request, options=planned, plan_id=name, queue=settings.task_queue)
    return started.plan_id


async def _history(request: Request, settings: Settings) -> tuple[History, str]:
    """The history of this machine, after asking the server about the runs that it has in progress."""
    store = history_store(settings)
    read = await asyncio.to_thread(store.read)
    running = history_of.active(read.history)
    if not running:
        return read.history, read.warning
    try:
        ends = await verbs.ends(await service_of(request).client(), running)
        settled = (await asyncio.to_thread(store.settle, ends)).history if ends else read.history
        return settled, read.warning
    except PlanError as error:
        return read.history, f"Runs in progress may have ended since: {error.message}"


def _chosen(history: History, which: str, plan: str) -> list[Entry]:
    if which == "active":
        return history_of.active(history)
    if which == "interrupted":
        one = history_of.resumable(history)
        return [one] if one else []
    return history_of.of_plan(history, plan) if plan else list(history.entries)
