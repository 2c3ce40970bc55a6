"""A call of a template's tool: starts its plan for an agent, waits a while, answers with its outputs.

A waiver counts only where all of what runs is what a person named: a template at a version, `NAME@HASH`, and no input
from the agent. Else nothing is waived, as in everything that an agent starts.

Rejected: counting waivers as `plan template run` does (`.plans/` is in a repository that an agent may edit), and never
(a nightly template that a person has read could not run from an agent at all).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from mcp.types import CallToolResult, Tool

from plansurvive.apps.mcp.common.capability import takes_tasks
from plansurvive.apps.mcp.common.host import Caller, Host, Request
from plansurvive.apps.mcp.template_tools.answers import answered
from plansurvive.apps.mcp.template_tools.offers import Offer, offers
from plansurvive.apps.mcp.tools.starting import UNWAIVED
from plansurvive.client import runs
from plansurvive.client.errors import PlanRefused
from plansurvive.client.history_feed import changes
from plansurvive.client.requests.connected import Connected
from plansurvive.client.requests.plan_request import Flags, prepared
from plansurvive.client.requests.roots import Roots
from plansurvive.client.verbs.start import Started
from plansurvive.features.templates.known import plan_file_of
from plansurvive.plans.run import ENDED
from plansurvive.plans.step_state import DONE_WORDS

WAIT = 50.0
"""Seconds that a call waits for its plan: many clients give up on a call after a minute."""


@dataclass(frozen=True)
class Templates:
    """The templates that a server offers as tools."""

    host: Host

    def found(self) -> list[Offer]:
        """The templates as they are now."""
        found = list(offers(self.host.settings, self.host.templates)) if self.host.templates else []
        self.host.starting.update(each.tool for each in found)
        return found

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
        if not takes_tasks(request.request_context):  # a client that does follows the task
            await _followed(request, here, started.plan_id)
        return await answered(here, started.plan_id)

    async def _start(self, here: Connected, caller: Caller, offer: Offer, given: Mapping[str, Any]) -> Started:
        settings = self.host.settings
        place = str(Roots.of(settings).paths[0])
        flags = Flags(Roots.of(settings).workspace(""), False, None, False, (), None, dict(given))
        wanted = prepared(plan_file_of(offer.template, settings, place), flags, settings)
        if wanted.unknown_tools and here.keeps_worker:
            raise PlanRefused(wanted.unknown_tools, wanted.file)
        options = wanted.options(settings, local=await here.is_local(), unread=True, **caller.starter)
        is_as_named = offer.is_exact and not given
        return await runs.start(
            here.client,
            wanted.file.data,
            options=options.model_copy(update=UNWAIVED | ({"waivers": True} if is_as_named else {})),
            name=wanted.file.title,
            queue=settings.task_queue,
        )


async def _followed(request: Request, here: Connected, plan: str) -> None:
    """Tell of progress until the plan has ended, awaits a person, or the time is over."""
    told = -1
    with suppress(TimeoutError):
        async with asyncio.timeout(WAIT):
            async for _ in changes(here.client, plan):
                view = await runs.brief(here.client, plan)
                done = sum(view.counts.get(name, 0) for name in DONE_WORDS)
                if done > told:
                    told = done
                    total = view.counts.get("total", done)
                    await request.report_progress(done, total, f"{done} of {total} steps done")
                if view.status in ENDED or view.pending:
                    return
