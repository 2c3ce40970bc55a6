"""The prompt that teaches an agent to write plan files: what this project tells its own LLM, for the tools of here."""

from __future__ import annotations

from typing import Annotated, Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.prompts.base import Message, UserMessage
from pydantic import Field

from plansurvive.apps.mcp.common.host import Host
from plansurvive.client.local_tools import known_tools
from plansurvive.features.planning.prompts import planning_system
from plansurvive.plans.llm.prompt_parts import clean, section

MAX_REQUEST = 20_000
_USE = """\
Write the plan in the format above, and pass it to these tools instead of answering with it:
1. plan_check: correct every problem that it reports.
2. plan_start: start it. plan_show with `wait` follows it; plan_events, plan_logs and plan_files say more.
Where a step awaits a person, say where the person decides, as the tools' answers do. You cannot approve, and
`requiresApproval: false` waives nothing in a plan that you start."""


def register(server: MCPServer[Any], host: Host) -> None:
    """Add the prompt."""

    def write_plan(
        request: Annotated[str, Field(description="What the plan should achieve.")] = "",
    ) -> list[Message]:
        """How to write a plan for the tools of this machine, check it and start it."""
        asked = section("USER REQUEST", clean(request[:MAX_REQUEST])) if request.strip() else ""
        system = planning_system(known_tools(host.settings).values(), about=request)
        return [UserMessage("\n\n".join(filter(None, (system, section("HOW TO USE IT", _USE), asked))))]

    server.prompt(name="write_plan", title="Write a plan")(write_plan)
