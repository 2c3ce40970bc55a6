"""A call of a template's tool: starts its plan for an agent, waits a while, answers with its outputs.

A waiver counts only where all of what runs is what a person named: a template at a version, `NAME@HASH`, and no input
from the agent. Else nothing is waived, as in everything that an agent starts (DECISIONS, 2026-11-22).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from mcp.types import CallToolResult, ContentBlock, TextContent, Tool

from client import runs
from client.end_records import run_of_ended
from client.errors import PlanRefused
from client.history_feed import changes
from client.mcp.host import Caller, Host, Request
from client.mcp.replies import bounded, reply
from client.mcp.templates.contents import as_text, contents
from client.mcp.templates.files import Written
from client.mcp.templates.offers import CONTENT, Offer, offers
from client.mcp.tools.views import shown
from client.mcp.where import where
from client.requests.connected import Connected
from client.requests.plan_request import Flags, prepared
from client.requests.roots import Roots
from client.start import Started
from client.summary import wait
from client.templates.known import plan_file_of
from plans.errors import PlanError, ToolError
from plans.run import ENDED, Result
from plans.views.models import BriefView
from plans.views.safe_text import safe
from plans.views.summary import Summary
from runtime.connect import storage
from runtime.value_store import ValueStore

WAIT = 50.0
"""Seconds that a call waits for its plan: many clients give up on a call after a minute."""


@dataclass(frozen=True)
class Templates:
    """The templates that a server offers as tools."""

    host: Host

    def found(self) -> list[Offer]:
        """The templates as they are now."""
        return list(offers(self.host.settings, self.host.templates)) if self.host.templates else []

    async def tools(self) -> list[Tool]:
        """Their tools."""
        return [each.described() for each in await asyncio.to_thread(self.found)]

    async def call(self, name: str, arguments: Mapping[str, Any], request: Request) -> CallToolResult | None:
        """Call the tool of a template; None if there is no such one. Raises PlanError."""
        offer = next((each for each in await asyncio.to_thread(self.found) if each.tool == name), None)
        if offer is None:
            return None
        caller = self.host.caller(request).to_operate()
        here = await self.host.connected(starts=True)
        started = await self._start(here, caller, offer, arguments)
        if not takes_tasks(request):
            await _followed(request, here, started.plan_id)
        return await answered(here, started.plan_id)

    async def _start(self, here: Connected, caller: Caller, offer: Offer, given: Mapping[str, Any]) -> Started:
        settings = self.host.settings
        place = str(Roots.of(settings).paths[0])
        flags = Flags(Roots.of(settings).workspace(""), False, None, False, (), None, dict(given))
        wanted = prepared(plan_file_of(offer.template, settings, place), flags, settings)
        if wanted.unknown_tools and here.keeps_worker:
            raise PlanRefused(wanted.unknown_tools, wanted.file)
        options = wanted.options(settings, local=await here.is_local(), by=caller.name)
        unwaived = {"waivers": offer.is_exact and not given, "approve_all": False, "known_plans": []}
        return await runs.start(
            here.client,
            wanted.file.data,
            options=options.model_copy(update=unwaived),
            name=wanted.file.title,
            queue=settings.task_queue,
        )


async def answered(here: Connected, plan: str) -> CallToolResult:
    """What a plan that a template's tool started answers: its outputs if it has ended, else where it stands."""
    view = await runs.brief(here.client, plan)
    if view.status not in ENDED:
        return reply(*await shown(here, plan))
    summary = await wait(here.client, plan)
    value = await _value(here, plan)
    outputs = value.value if value and value.ok and isinstance(value.value, dict) else {}
    told = {name: each for name, each in outputs.items() if name != CONTENT}
    data = {"planId": summary.plan_id, "status": summary.status.value, "hasEnded": True, "outputs": told}
    is_good = summary.is_completed and (value is None or value.ok)
    blocks = await _blocks(here, plan, summary, outputs) if is_good else [_why(summary, value, here)]
    return CallToolResult(content=blocks, structured_content=data, is_error=not is_good)


async def _blocks(here: Connected, plan: str, summary: Summary, outputs: Mapping[str, Any]) -> list[ContentBlock]:
    if CONTENT not in outputs:
        text = f"Plan {summary.plan_id} completed."
        return [TextContent(text=f"{text} Outputs: {as_text(dict(outputs))}" if outputs else text)]
    view = await runs.show(here.client, plan)
    place = view.workspace if await here.is_local() else None
    files = Written(summary.plan_id, place, frozenset(summary.files_written), here.settings)
    return await asyncio.to_thread(contents, outputs[CONTENT], files.block)


async def _value(here: Connected, plan: str) -> Result | None:
    """The value of a plan that has ended, whole. Raises PlanError if it is stored where this machine cannot read it."""
    run = await run_of_ended(here.client, plan)
    if run is None or run.value is None or run.value.large is None:
        return run.value if run else None
    try:
        found = await ValueStore(storage(here.settings)).get(run.value.large)
    except ToolError as error:
        raise PlanError(f"the outputs of {plan} cannot be read here: {error.message}", "VALUE_UNAVAILABLE") from error
    return run.value.model_copy(update={"value": found})


def _why(summary: Summary, value: Result | None, here: Connected) -> TextContent:
    """Why a plan that has ended has no outputs."""
    rows = [f"Plan {summary.plan_id}: {summary.status.value}. {summary.stopped}".strip()]
    rows += [f"{each.step_id}: {each.code or 'failed'}: {each.error}" for each in summary.failed[:10]]
    rows += [f"{each.step_id} was denied{f': {each.comment}' if each.comment else ''}" for each in summary.denied[:10]]
    rows += [f"{value.code}: {value.error}"] if value and not value.ok else []
    return TextContent(text=bounded(safe("\n".join([*rows, where(here, summary.plan_id).text]))))


async def _followed(request: Request, here: Connected, plan: str) -> None:
    """Tell of progress until the plan has ended, awaits a person, or the time is over."""
    told = -1
    with suppress(TimeoutError):
        async with asyncio.timeout(WAIT):
            async for _ in changes(here.client, plan):
                view = await runs.brief(here.client, plan)
                done = _done(view)
                if done > told:
                    told = done
                    total = view.counts.get("total", done)
                    await request.report_progress(done, total, f"{done} of {total} steps done")
                if view.status in ENDED or view.pending:
                    return


def _done(view: BriefView) -> int:
    return sum(view.counts.get(name, 0) for name in ("completed", "skipped", "failed", "denied"))


def takes_tasks(request: Request) -> bool:
    """Whether the caller is answered with a task, and follows the plan by it."""
    capabilities = request.client_capabilities
    declared: Sequence[str] | Mapping[str, Any] = (capabilities.extensions if capabilities else None) or ()
    return "io.modelcontextprotocol/tasks" in declared
