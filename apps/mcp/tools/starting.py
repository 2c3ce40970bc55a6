"""Starting plans: plan_start, plan_make. What an agent starts counts as written by an LLM: nothing in it is waived.

An agent chooses what runs and when, so nothing that it starts waives an approval, whoever wrote the plan. Rejected:
trusting files that a person wrote (an agent writes files, too).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from mcp.server.mcpserver import MCPServer
from mcp.types import CallToolResult
from pydantic import Field

from plansurvive.apps.mcp.common.capability import takes_tasks
from plansurvive.apps.mcp.common.host import Caller, Host, Request
from plansurvive.apps.mcp.common.replies import reply
from plansurvive.apps.mcp.tools.adding import Kind, add
from plansurvive.apps.mcp.tools.sources import (
    Chosen,
    FileGiven,
    InputsGiven,
    PlanGiven,
    Source,
    TemplateGiven,
    Workspace,
    requested,
)
from plansurvive.apps.mcp.tools.views import Shown, shown, text_of
from plansurvive.apps.mcp.tools.waiting import Wait, news
from plansurvive.client import runs
from plansurvive.client.errors import PlanRefused
from plansurvive.client.priority import of_another
from plansurvive.client.requests.connected import Connected
from plansurvive.client.requests.llm import require_llm
from plansurvive.client.requests.plan_request import Request as PlanRequest
from plansurvive.client.requests.roots import Roots
from plansurvive.client.requests.workspaces import named
from plansurvive.client.runs import Started
from plansurvive.plans.definition.checks.will_ask import waived
from plansurvive.plans.run import Options

NewId = Annotated[str | None, Field(max_length=200, description="Id of the new plan; ids are never reused.")]
MaxParallel = Annotated[int | None, Field(ge=1, le=100, description="Maximum number of steps at the same time.")]
Review = Annotated[bool, Field(description="Start in review: it runs once a person has started it.")]
Timeout = Annotated[
    float | None,
    Field(gt=0, le=31_536_000, description="Seconds until it must have ended, else it fails; at most what it says."),
]
UNWAIVED = {"waivers": False, "approve_all": False, "owns": []}
"""The options of whatever an agent starts."""


@dataclass(frozen=True)
class Starting:
    """The tools that start plans."""

    host: Host

    async def plan_start(
        self,
        ctx: Request,
        plan: PlanGiven = None,
        file: FileGiven = None,
        template: TemplateGiven = None,
        inputs: InputsGiven = None,
        workspace: Workspace = None,
        id: NewId = None,
        max_parallel: MaxParallel = None,
        review: Review = False,
        timeout: Timeout = None,
        wait: Wait = 0,
    ) -> Annotated[CallToolResult, Shown]:
        """Start a plan: given inline, as a file or as a saved template. It runs durably in the background, whether or
        not this client or server goes on. Steps that need an approval await a person; nothing in the plan waives that.
        """
        caller = self.host.caller(ctx).to_operate()
        chosen = Chosen(inputs or {}, workspace, id, max_parallel, review, timeout)
        wanted = requested(Source(plan, file, template), chosen, self.host.settings)
        here = await self.host.connected(starts=True)
        started = await start(here, caller, wanted)
        await news(here, started.plan_id, 0 if takes_tasks(ctx.request_context) else wait)
        found, _ = await shown(here, started.plan_id)
        found = found.model_copy(update={"warnings": _warnings(wanted)})
        return reply(found, text_of(found))

    async def plan_make(
        self,
        ctx: Request,
        request: Annotated[str, Field(min_length=1, max_length=20_000, description="What the plan should achieve.")],
        workspace: Workspace = None,
        id: NewId = None,
        timeout: Timeout = None,
        wait: Wait = 0,
    ) -> Annotated[CallToolResult, Shown]:
        """Have this machine's LLM write a plan from a request in plain words. It stays in review until a person begins
        it."""
        caller, settings = self.host.caller(ctx).to_operate(), self.host.settings
        place = Roots.of(settings).workspace(workspace or "")
        here = await self.host.connected(starts=True)
        require_llm(settings, own_worker=here.keeps_worker)
        options = Options(
            workspace=named(place, settings, local=await here.is_local()), review=True, waivers=False, timeout=timeout,
            **caller.starter,
        )  # fmt: skip
        fields = {"defaults": {"onFailure": "ask_llm"}}
        started = await runs.make(
            here.client, request, options=options, fields=fields, plan_id=id, queue=settings.task_queue
        )
        await news(here, started.plan_id, 0 if takes_tasks(ctx.request_context) else wait)
        return reply(*await shown(here, started.plan_id))


async def start(here: Connected, caller: Caller, wanted: PlanRequest) -> Started:
    """Start a checked plan for an agent, waiving nothing. Raises PlanRefused, and as `client.runs.start`."""
    if wanted.unknown_tools and here.keeps_worker:
        raise PlanRefused(wanted.unknown_tools, wanted.file)
    settings = here.settings
    options = wanted.options(settings, local=await here.is_local(), unread=True, **caller.starter)
    return await runs.start(
        here.client,
        wanted.file.data,
        options=options.model_copy(update=UNWAIVED | of_another(wanted.plan, caller.name, options.timeout)),
        plan_id=wanted.flags.id,
        name=wanted.file.title,
        queue=settings.task_queue,
    )


def _warnings(wanted: PlanRequest) -> list[str]:
    found = [problem.text for problem in [*wanted.warnings, *wanted.unknown_tools]]
    if names := waived(wanted.plan):
        found.append(f"these steps waive their approval, which only a person can do; they ask: {', '.join(names[:20])}")
    if wanted.plan.owns:
        found.append("`owns` does not count: only a person can let a plan replace files unasked")
    return found[:100]


def register(server: MCPServer[Any], host: Host) -> None:
    """Add the tools."""
    tools = Starting(host)
    add(server, tools.plan_start, "Start a plan", Kind.STARTS)
    add(server, tools.plan_make, "Have a plan written", Kind.STARTS)
