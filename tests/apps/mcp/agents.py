"""What tests ask an agent to do: calls of tools with the client of the official SDK, in memory."""

from __future__ import annotations

from typing import Any

from mcp import Client as Agent

from plansurvive.apps.mcp.common.host import Host
from plansurvive.apps.mcp.server import build

__all__ = ["Agent", "agent_of", "called", "refused"]


def agent_of(host: Host) -> Agent:
    """An agent that is connected to a server of this host, inside its `async with`."""
    return Agent(build(host))


async def called(agent: Agent, tool: str, **arguments: Any) -> dict[str, Any]:
    """The structured content of a call that succeeds."""
    found = await agent.call_tool(tool, arguments)
    assert not found.is_error, found
    assert found.structured_content is not None
    return dict(found.structured_content)


async def refused(agent: Agent, tool: str, **arguments: Any) -> tuple[str, str]:
    """Code and message of a call that fails."""
    found = await agent.call_tool(tool, arguments)
    assert found.is_error, found
    assert found.structured_content is not None
    return str(found.structured_content["code"]), str(found.structured_content["message"])
