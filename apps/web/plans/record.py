"""What is recorded of a plan beside its steps: the files it changed, with diffs; its history; what it cost."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from temporalio.client import Client

from plansurvive.apps.web.common.rendering import page, url_of
from plansurvive.apps.web.common.service import service_of
from plansurvive.client import runs
from plansurvive.client.ids import plan_id
from plansurvive.client.runs import PlanView
from plansurvive.features.agents.model.as_plan import TOOL as AGENT
from plansurvive.features.agents.model.order import agent_of_step
from plansurvive.features.coding_agents.model import TOOL as CODING_AGENT
from plansurvive.plans.errors import PlanError
from plansurvive.plans.files.changes import one_of
from plansurvive.plans.usage import Usage

ENTRIES = 500
"""Log entries that are shown, the newest."""
DIFF_CHARACTERS = 20_000
"""Of the diff of one file."""
AGENTS = (AGENT, CODING_AGENT)
AGENTS_SHOWN, PATIENCE = 50, 20.0
"""Agents whose work is listed, and seconds that each has to say what it has done."""


async def files(request: Request) -> Response:
    """The files that each step created, changed and deleted. The worker reads them, so the page comes first."""
    plan, step = request.path_params["plan_id"], request.query_params.get("step", "")
    watcher = await service_of(request).watcher(plan)
    context: dict[str, Any] = {"plan": plan_id(plan), "view": await watcher.first(), "step": step}
    if "now" not in request.query_params:
        url = url_of(f"/plans/{plan}/files", step=step, now="1")
        return page(request, "files.html", nav="plans", tab="files", url=url, report=None, **context)
    report = await runs.file_changes(watcher.client, plan, step or None)
    name = "_files.html" if request.headers.get("hx-request") == "true" else "files.html"
    return page(request, name, nav="plans", tab="files", url="", report=report, most=DIFF_CHARACTERS, one_of=one_of,
                **context)  # fmt: skip


async def changes(request: Request) -> Response:
    """The change log and the log of the plan, newest first."""
    watcher = await service_of(request).watcher(request.path_params["plan_id"])
    view, whole = await watcher.first(), await watcher.whole()
    return page(request, "changes.html", nav="plans", tab="changes", plan=view.id, view=view,
                changes=whole.changes[::-1], log=whole.log[-ENTRIES:][::-1], more=max(0, len(whole.log) - ENTRIES),
                whole=whole)  # fmt: skip


async def cost(request: Request) -> Response:
    """Tokens, requests and costs, by model and step; and by agent, which workers read, so the page comes first."""
    plan = request.path_params["plan_id"]
    watcher = await service_of(request).watcher(plan)
    view, whole = await watcher.first(), await watcher.whole()
    used, names, agents = view.tokens, _names(whole), None
    if "now" in request.query_params:
        agents = await _agents(watcher.client, whole, names)
    name = "_agents.html" if agents is not None and request.headers.get("hx-request") == "true" else "cost.html"
    by_step = [_share(step, used.by_step, used.cost_by_step) for step in {**used.by_step, **used.cost_by_step}]
    by_model = [_share(model, used.by_model, used.cost_by_model) for model in {**used.by_model, **used.cost_by_model}]
    return page(request, name, nav="plans", tab="cost", plan=view.id, view=view, tokens=used, agents=agents,
                by_step=sorted(by_step, key=lambda share: -share.tokens)[:200],
                by_model=sorted(by_model, key=lambda share: -share.tokens),
                url=url_of(f"/plans/{plan}/cost", now="1") if names else "", budget=whole.budget)  # fmt: skip


class Share(NamedTuple):
    """What one step or model has used."""

    name: str
    tokens: int
    costs: str


def _share(name: str, tokens: Mapping[str, int], costs: Mapping[str, dict[str, float]]) -> Share:
    return Share(name, tokens.get(name, 0), Usage(cost=costs.get(name, {})).costs)


class AgentRow(NamedTuple):
    """What one agent has used and done, as far as it is known."""

    id: str
    used: Share
    """Of its step."""
    calls: int
    files: int | None
    decisions: str | None
    """`2 approved, 1 denied`; None: the agent does not answer."""


def _names(whole: PlanView) -> Counter[tuple[str, str]]:
    """The agents that have worked on the plan's steps, each with its step, in the plan's order: how many calls."""
    calls = Counter[tuple[str, str]]()
    for step in whole.steps:
        if step.tool in AGENTS and step.started_at:
            calls[agent_of_step(whole.id, step.id, 1), step.id] += 0
        for call in whole.step_tool_history.get(str(step.order), []):
            if call.agent:
                # A turn of a coding agent is no call of its own.
                calls[call.agent, call.step_id or step.id] += call.tool != CODING_AGENT
    return calls


async def _agents(client: Client, whole: PlanView, calls: Counter[tuple[str, str]]) -> list[AgentRow]:
    known = list(calls)[:AGENTS_SHOWN]
    views = await asyncio.gather(*(_seen(client, agent) for agent, _ in known))
    return [
        AgentRow(
            agent, _share(step_id, whole.tokens.by_step, whole.tokens.cost_by_step), calls[agent, step_id],
            None if seen is None else _files(seen), None if seen is None else _decisions(seen),
        )
        for (agent, step_id), seen in zip(known, views, strict=True)
    ]  # fmt: skip


async def _seen(client: Client, agent: str) -> PlanView | None:
    try:
        return await asyncio.wait_for(runs.show(client, agent), PATIENCE)
    except (PlanError, TimeoutError):
        return None


def _files(agent: PlanView) -> int:
    wrote = (path for paths in agent.step_files.values() for path in paths)
    return len({*wrote, *(path for step in agent.steps for path in step.deleted)})


def _decisions(agent: PlanView) -> str:
    found = Counter("approved" if step.decision.approved else "denied" for step in agent.steps if step.decision)
    return ", ".join(f"{number} {verb}" for verb, number in sorted(found.items())) or "none"


routes = [
    Route("/plans/{plan_id}/files", files),
    Route("/plans/{plan_id}/changes", changes),
    Route("/plans/{plan_id}/cost", cost),
]
