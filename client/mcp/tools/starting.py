"""Starting plans: plan_start. What an agent starts counts as written by an LLM: nothing in it is waived."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from mcp.server.mcpserver import MCPServer
from mcp.types import CallToolResult
from pydantic import Field

from client import runs
from client.errors import PlanRefused
from client.mcp.host import Host, Request
from client.mcp.replies import reply
from client.mcp.tools.adding import Kind, add
from client.mcp.tools.sources import Inputs, Source, requested
from client.mcp.tools.views import Shown, shown

PlanGiven = Annotated[
    dict[str, Any] | str | None,
    Field(description="The plan: an object, or its text in JSON or YAML. Give this, `file` or `template`."),
]
FileGiven = Annotated[
    str | None, Field(max_length=4_096, description="Path of a plan file below the directories of this server.")
]
TemplateGiven = Annotated[str | None, Field(max_length=300, description="Name of a saved template, or NAME@VERSION.")]
InputsGiven = Annotated[dict[str, Any] | None, Field(description="Values of the plan's inputs, by name.")]
Workspace = Annotated[
    str | None, Field(max_length=4_096, description="Directory that the tools work in; none: the server's own.")
]
NewId = Annotated[str | None, Field(max_length=200, description="Id of the new plan; ids are never reused.")]
MaxParallel = Annotated[int | None, Field(ge=1, le=100, description="Maximum number of steps at the same time.")]


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
        review: Annotated[bool, Field(description="Start in review: a person reads it, then `plan begin`.")] = False,
    ) -> Annotated[CallToolResult, Shown]:
        """Start a plan; it runs durably in the background, also after this server has ended. Returns its id at once."""
        caller, settings = self.host.caller(ctx).to_operate(), self.host.settings
        chosen = Inputs(inputs or {}, workspace, id, max_parallel, review)
        wanted = requested(Source(plan, file, template), chosen, settings)
        here = await self.host.connected(starts=True)
        if wanted.unknown_tools and here.keeps_worker:
            raise PlanRefused(wanted.unknown_tools, wanted.file)
        options = wanted.options(settings, local=await here.is_local(), by=caller.name)
        started = await runs.start(
            here.client,
            wanted.file.data,
            options=options.model_copy(update={"waivers": False, "approve_all": False}),
            plan_id=wanted.flags.id,
            name=wanted.file.title,
            queue=settings.task_queue,
        )
        return reply(*await shown(here, started.plan_id))


def register(server: MCPServer[Any], host: Host) -> None:
    """Add the tools."""
    tools = Starting(host)
    add(server, tools.plan_start, "Start a plan", Kind.STARTS)
