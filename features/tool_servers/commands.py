"""`plan mcp servers` and `plan mcp login`: the servers of tools in mcp.toml, and what they offer."""

from __future__ import annotations

import webbrowser
from datetime import datetime
from typing import Annotated

import typer
from pydantic import Field
from rich.table import Table
from rich.text import Text

from plansurvive.client.cli.terminal import environment, output, signals
from plansurvive.client.cli.terminal.options import AsJson, Refresh
from plansurvive.features.tool_servers.listings import read_listings
from plansurvive.features.tool_servers.servers import read_servers
from plansurvive.features.tool_servers.tools import refresh as refreshed
from plansurvive.plans.model import Value
from plansurvive.plans.text.lists import number_of
from plansurvive.plans.text.safe_text import line
from plansurvive.runtime.settings import Settings

FAILED = 1
"""Exit code if a server did not answer."""
Server = Annotated[str, typer.Argument(help="Name of a server in mcp.toml.")]


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


def servers(refresh: Refresh = False, as_json: AsJson = False) -> None:
    """List the servers of tools in mcp.toml: how they are reached, and their tools. Exit code 1 if one failed."""
    settings = environment.settings()
    signals.run(refreshed(settings, everything=refresh))
    found = servers_of(settings)
    if as_json:
        output.show_json([each.model_dump(mode="json") for each in found])
    elif not found:
        output.show("no servers; docs/tool-servers.md says how to name some in mcp.toml")
    else:
        _show(found)
    if any(each.state == "failed" for each in found):
        raise typer.Exit(FAILED)


def login(server: Server) -> None:
    """Log in to a server of mcp.toml in the browser, so that workers may act for you there."""
    from plansurvive.features.tool_servers.login import log_in  # the library is slow to import

    def show(url: str) -> None:
        output.show(f"Log in here: {url}")
        webbrowser.open(url)

    count = signals.run(log_in(environment.settings(), server, show))
    output.show(f"Logged in to {server}: {count} tools. Workers use and renew the token from now on.")


def _show(found: list[ServerView]) -> None:
    table = Table.grid(padding=(0, 2, 0, 0))
    for each in found:
        count = number_of(len(each.tools), "tool")
        asks = f", {len(each.asks)} need approval" if each.asks else ""
        since = f"since {each.since.astimezone():%Y-%m-%d %H:%M}" if each.since else ""
        style = "red" if each.state == "failed" else ""
        table.add_row(
            Text(each.name, style="bold"), each.transport, Text(each.state, style=style), Text(count + asks), since
        )
    output.out().print(table)
    for each in found:
        if each.error:
            output.show(f"{each.name}: {line(each.error)}")
        for name, why in each.left_out.items():
            output.show(f"{each.name}: {line(name)} is left out: {line(why)}")
