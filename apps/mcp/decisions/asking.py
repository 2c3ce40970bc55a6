"""The tool plan_decide: the client asks its person what a plan awaits; the agent learns what was decided."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from mcp.server.mcpserver import MCPServer
from mcp.types import CallToolResult, InputRequiredResult, TextContent

from plansurvive.apps.mcp.common.host import Host, Request
from plansurvive.apps.mcp.common.replies import bounded, reply
from plansurvive.apps.mcp.decisions.flow import ask_person
from plansurvive.apps.mcp.tools.adding import Kind, add
from plansurvive.apps.mcp.tools.views import PlanId, Shown, shown


@dataclass(frozen=True)
class Asking:
    """The tool."""

    host: Host

    async def plan_decide(
        self, ctx: Request, plan_id: PlanId
    ) -> Annotated[CallToolResult, Shown] | InputRequiredResult:
        """Have the person asked, by this client, for the decisions that a plan awaits: approvals, questions, a review.

        You cannot fill in the form, and the plan decides nothing without it. Where this client cannot ask, the answer
        says where the person decides.
        """
        here = await self.host.connected()
        found = await ask_person(self.host, ctx, here, plan_id)
        if isinstance(found, InputRequiredResult):
            return found
        told = reply(*await shown(here, plan_id))
        said = bounded("\n".join(found))
        return told.model_copy(update={"content": [*([TextContent(text=said)] if said else []), *told.content]})


def register(server: MCPServer[Any], host: Host) -> None:
    """Add the tool, unless nothing may be decided through clients."""
    if host.deciding != "elsewhere":
        add(server, Asking(host).plan_decide, "Ask the person to decide", Kind.CONTROLS)
