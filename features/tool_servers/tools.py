"""The tools of servers for commands: as last listed, which starts no server, or listed again now.

Workers list their servers when they start and with each call; a command lists a server that has no listing yet, or an
old one, when it is about the tools themselves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from typing import Any

from plansurvive.features.tool_servers.listings import is_fresh, read_listings
from plansurvive.features.tool_servers.servers import read_servers
from plansurvive.plans.model import ToolSpec
from plansurvive.runtime.settings import Settings

MAX_DATA = 200_000
"""Parts of a plan's data that are searched for names of tools."""


def specs(settings: Settings) -> dict[str, ToolSpec]:
    """The tools of servers by name, as last listed. Raises SettingError for a bad mcp.toml."""
    listings = read_listings(settings.state_dir, read_servers(settings))
    return {spec.name: spec for each in listings.values() for spec in each.tools}


async def refresh(settings: Settings, data: Any = None, *, everything: bool = False) -> list[str]:
    """List the servers without a fresh listing again, or all; of a plan's data, only those whose tools it names.

    Returns why servers could not be listed when they were last asked. Raises SettingError for a bad mcp.toml.
    """
    servers, now = read_servers(settings), datetime.now(UTC)
    if not servers:
        return []
    listings = read_listings(settings.state_dir, servers)
    old = [name for name in servers if everything or not is_fresh(listings.get(name), now)]
    if data is not None and old:
        named = {text.partition(".")[0] for text in _tools(data)}
        old = [name for name in old if name in named]
    if old:
        await list_again(settings, old)
        listings = read_listings(settings.state_dir, servers)
    return [f"Tool server {name}: {each.error}" for name, each in listings.items() if each.error]


async def list_again(settings: Settings, names: Collection[str]) -> None:
    """List these servers now, and store what they say. One that does not answer keeps its last listing."""
    # lazily: imports all tools and what runs servers, which most commands do not need
    from plansurvive.activities.tools.registry import load_tools
    from plansurvive.features.tool_servers.server_tools import ServerTools, tool_servers

    settings.make_state_dir()
    async with tool_servers(settings) as servers:
        await ServerTools(servers, settings, load_tools(settings.tools)).refresh(names)


def _tools(data: Any) -> Iterator[str]:
    """Values of fields called `tool`, and in lists called `tools`, that have a point in them."""
    pending, left = [data], MAX_DATA
    while pending and left:
        part, left = pending.pop(), left - 1
        if isinstance(part, dict):
            name = part.get("tool")
            if isinstance(name, str) and "." in name:
                yield name
            named = part.get("tools")
            yield from (
                (each for each in named if isinstance(each, str) and "." in each) if isinstance(named, list) else ()
            )
            pending += part.values()
        elif isinstance(part, list):
            pending += part
