"""Seeing plans: plan_show, plan_pending."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from mcp.server.mcpserver import MCPServer
from mcp.types import CallToolResult
from pydantic import Field

from client import runs
from client.mcp.host import Host, Request
from client.mcp.replies import reply
from client.mcp.tools.adding import Kind, add
from client.mcp.tools.views import MAX_STEPS, Awaited, Shown, shown
from client.mcp.where import Where, where
from plans.model import Value

PlanId = Annotated[str, Field(min_length=1, max_length=300, description="Id of the plan.")]


class PendingShown(Value):
    """The decisions that plans await."""

    pending: list[Awaited] = Field(default_factory=list)
    more: int = Field(default=0, description="Decisions that are not listed.")
    silent: list[str] = Field(default_factory=list, description="Why some plans are missing.")
    decide: Where | None = Field(default=None, description="Where a person decides.")


@dataclass(frozen=True)
class Showing:
    """The tools that only look."""

    host: Host

    async def plan_show(
        self, ctx: Request, plan_id: PlanId, from_step: Annotated[int, Field(ge=0, description="First step.")] = 0
    ) -> Annotated[CallToolResult, Shown]:
        """Show where a plan stands: its status, its steps, and what awaits a person."""
        del ctx
        here = await self.host.connected()
        return reply(*await shown(here, plan_id, from_step))

    async def plan_pending(
        self, ctx: Request, plan_id: PlanId | None = None
    ) -> Annotated[CallToolResult, PendingShown]:
        """List the decisions that plans await, with the whole call that each is about; of all plans, or of one."""
        del ctx
        here = await self.host.connected()
        silent: list[str] = []
        found = [Awaited.of(each) async for each in runs.pending(here.client, silent.append, plan=plan_id)]
        listed = found[:MAX_STEPS]
        place = where(here, plan_id or listed[0].plan_id) if listed else None
        shown = PendingShown(pending=listed, more=len(found) - len(listed), silent=silent, decide=place)
        rows = [f"{each.plan_id} {each.step_id}: {each.kind} of {each.tool}" for each in listed] or ["Nothing awaits."]
        return reply(shown, "\n".join(rows + silent + ([place.text] if place else [])))


def register(server: MCPServer[Any], host: Host) -> None:
    """Add the tools."""
    tools = Showing(host)
    add(server, tools.plan_show, "Show a plan", Kind.READS)
    add(server, tools.plan_pending, "Decisions that plans await", Kind.READS)
