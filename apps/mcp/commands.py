"""`plan mcp`: by itself the server for agents; `plan mcp servers` is about the servers that plans use."""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import Annotated, Literal

import typer

from plansurvive.client.cli.commands import add_commands_of_features
from plansurvive.client.cli.terminal import environment
from plansurvive.client.cli.terminal.session import who

MayApprove = Annotated[
    bool, typer.Option("--may-approve", help="Let agents approve, deny, answer, send events and begin plans for you.")
]
Templates = Annotated[
    str, typer.Option("--templates", metavar="NAMES", help="Offer these saved templates as tools, by commas.")
]
Decide = Annotated[
    Literal["here", "questions", "elsewhere"],
    typer.Option(
        "--decide", help="What people decide in the agent's client: all (here), only answers (questions), nothing."
    ),
]


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
        _serve(may_approve, templates, decide)


def _serve(may_approve: bool, templates: str, decide: Literal["here", "questions", "elsewhere"]) -> None:
    """Serve plans to agents over MCP, on standard input/output."""
    from plansurvive.apps.mcp.common.host import (
        Host,  # the library is slow to import, which `plan mcp --help` does without
    )
    from plansurvive.apps.mcp.server import build
    from plansurvive.apps.mcp.stdio import serve

    if sys.stdin.isatty():
        sys.stderr.write("An agent starts this command and speaks MCP with it; docs/mcp.md says how. End it: Ctrl-D\n")
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="plan mcp: %(message)s")
    names = tuple(filter(None, (name.strip() for name in templates.split(","))))
    host = Host(environment.settings(), environment.environ(), who(), may_approve, names, decide)
    if asyncio.run(serve(build(host))):
        raise KeyboardInterrupt
