"""`plan mcp`: by itself the server for agents; `plan mcp servers` is about the servers that plans use."""

from __future__ import annotations

import typer

from plansurvive.client.cli.commands import add_commands_of_features
from plansurvive.client.cli.mcp.command import Decide, MayApprove, Templates, mcp

app = typer.Typer(
    help="Serve plans to agents over MCP, on standard input/output.",
    add_completion=False,
    invoke_without_command=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
add_commands_of_features(app, "mcp")


@app.callback()
def _group(
    context: typer.Context, may_approve: MayApprove = False, templates: Templates = "", decide: Decide = "here"
) -> None:
    if context.invoked_subcommand is None:
        mcp(may_approve, templates, decide)
