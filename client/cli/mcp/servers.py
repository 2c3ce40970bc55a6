"""`plan mcp servers`: the servers of tools in mcp.toml, and what they offer."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from plansurvive.client.cli import environment, output, signals
from plansurvive.client.cli.options import AsJson
from plansurvive.client.tool_servers.servers import ServerView, list_again, servers_of, stale
from plansurvive.plans.views.safe_text import line
from plansurvive.runtime.settings import Settings

FAILED = 1
"""Exit code if a server did not answer."""
Refresh = Annotated[bool, typer.Option("--refresh", help="Ask all servers of mcp.toml again, also those asked lately.")]


def refreshed(settings: Settings, everything: bool) -> list[ServerView]:
    """The servers, after those without a fresh listing were asked; or all of them."""
    names = [each.name for each in servers_of(settings)] if everything else stale(settings)
    if names:
        signals.run(list_again(settings, names))
    return servers_of(settings)


def servers(refresh: Refresh = False, as_json: AsJson = False) -> None:
    """List the servers of tools in mcp.toml: how they are reached, and their tools. Exit code 1 if one failed."""
    found = refreshed(environment.settings(), refresh)
    if as_json:
        output.show_json([each.model_dump(mode="json") for each in found])
    elif not found:
        output.show("no servers; docs/tool-servers.md says how to name some in mcp.toml")
    else:
        _show(found)
    if any(each.state == "failed" for each in found):
        raise typer.Exit(FAILED)


def _show(found: list[ServerView]) -> None:
    table = Table.grid(padding=(0, 2, 0, 0))
    for each in found:
        count = f"{len(each.tools)} tool{'s' * (len(each.tools) != 1)}"
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
