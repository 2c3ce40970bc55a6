"""`plan mcp login`: a person logs in to a server of tools."""

from __future__ import annotations

import webbrowser
from typing import Annotated

import typer

from plansurvive.client.cli import environment, output, signals

Server = Annotated[str, typer.Argument(help="Name of a server in mcp.toml.")]


def login(server: Server) -> None:
    """Log in to a server of mcp.toml in the browser, so that workers may act for you there."""
    from plansurvive.client.tool_servers.login import log_in  # the library is slow to import

    def show(url: str) -> None:
        output.show(f"Log in here: {url}")
        webbrowser.open(url)

    count = signals.run(log_in(environment.settings(), server, show))
    output.show(f"Logged in to {server}: {count} tools. Workers use and renew the token from now on.")
