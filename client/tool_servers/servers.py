"""What the servers of mcp.toml offer: as last listed, which starts none of them, or listed again now.

Workers list their servers when they start and with each call; a command lists a server that has no listing yet, or an
old one, when it is about the tools themselves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from typing import Any

from pydantic import Field

from plansurvive.plans.model import ToolSpec, Value
from plansurvive.runtime.mcp.listings import is_fresh, read_listings
from plansurvive.runtime.mcp.servers import read_servers
from plansurvive.runtime.settings import Settings

MAX_DATA = 200_000
"""Parts of a plan's data that are searched for names of tools."""


class ServerView(Value):
    """One server of mcp.toml, and what it was last heard to offer."""

    name: str
    transport: str = Field(description="stdio or http.")
    state: str = Field(description="listed; failed: it did not answer when last asked; unknown: it was never asked.")
    tools: list[str] = Field(default_factory=list, description="Names of its tools.")
    asks: list[str] = Field(default_factory=list, description="Those that need approval.")
    since: datetime | None = Field(default=None, description="When it listed them.")
    left_out: dict[str, str] = Field(default_factory=dict, description="By name, why a tool cannot be used.")
    error: str = Field(default="", description="Why it did not answer when last asked.")


def server_specs(settings: Settings) -> dict[str, ToolSpec]:
    """The tools of servers by name, as last listed. Raises SettingError for a bad mcp.toml."""
    listings = read_listings(settings.state_dir, read_servers(settings))
    return {spec.name: spec for each in listings.values() for spec in each.tools}


def servers_of(settings: Settings) -> list[ServerView]:
    """The servers, as last listed. Raises SettingError for a bad mcp.toml."""
    servers = read_servers(settings)
    listings = read_listings(settings.state_dir, servers)
    found = []
    for name, server in servers.items():
        listing, transport = listings.get(name), "stdio" if server.is_local else "http"
        if listing is None:
            found.append(ServerView(name=name, transport=transport, state="unknown"))
            continue
        found.append(
            ServerView(
                name=name,
                transport=transport,
                state="failed" if listing.error else "listed",
                tools=[spec.name for spec in listing.tools],
                asks=[spec.name for spec in listing.tools if spec.approval == "always"],
                since=listing.time if listing.tools or not listing.error else None,
                left_out=listing.left_out,
                error=listing.error,
            )
        )
    return found


def stale(settings: Settings) -> list[str]:
    """Names of the servers without a fresh listing."""
    servers, now = read_servers(settings), datetime.now(UTC)
    listings = read_listings(settings.state_dir, servers)
    return [name for name in servers if not is_fresh(listings.get(name), now)]


def named_in(data: Any, settings: Settings) -> list[str]:
    """Names of the servers without a fresh listing whose tools a plan's data names, at any depth."""
    tools = {text.partition(".")[0] for text in _tools(data)}
    return [name for name in stale(settings) if name in tools] if tools else []


async def list_again(settings: Settings, names: Collection[str]) -> None:
    """List these servers now, and store what they say. One that does not answer keeps its last listing."""
    if not names:
        return
    # lazily: imports all tools and what runs servers, which most commands do not need
    from plansurvive.activities.mcp.of_settings import tool_servers
    from plansurvive.activities.mcp.server_tools import ServerTools
    from plansurvive.activities.tools.registry import load_tools

    settings.make_state_dir()
    async with tool_servers(settings) as servers:
        await ServerTools(servers, settings, load_tools(settings.tools)).refresh(names)


def _tools(data: Any) -> Iterator[str]:
    """Values of fields called `tool` that have a point in them."""
    pending, left = [data], MAX_DATA
    while pending and left:
        part, left = pending.pop(), left - 1
        if isinstance(part, dict):
            name = part.get("tool")
            if isinstance(name, str) and "." in name:
                yield name
            pending += part.values()
        elif isinstance(part, list):
            pending += part
