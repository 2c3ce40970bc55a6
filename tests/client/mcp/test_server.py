"""Our MCP server with the client of the official SDK, in memory."""

from __future__ import annotations

from typing import Any

from mcp import Client as McpClient
from temporalio.worker import Worker

from client.mcp.host import Host
from client.mcp.server import build

DELETES = {"steps": [{"id": "b", "tool": "delete_file", "requiresApproval": False, "args": {"path": "a.txt"}}]}


async def called(agent: McpClient, tool: str, **arguments: Any) -> dict[str, Any]:
    """The structured content of a call that succeeds."""
    found = await agent.call_tool(tool, arguments)
    assert not found.is_error, found
    assert found.structured_content is not None
    return dict(found.structured_content)


async def test_what_an_agent_starts_waives_nothing_and_says_where_a_person_decides(host: Host, worker: Worker) -> None:
    async with McpClient(build(host)) as agent:
        plan = (await called(agent, "plan_start", plan=DELETES))["planId"]
        pending = await called(agent, "plan_pending", planId=plan)
    assert "plan pending" in pending["decide"]["command"]
