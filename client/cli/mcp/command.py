"""The command `plan mcp`."""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import Annotated, Literal

import typer

from plansurvive.client.cli import environment
from plansurvive.client.cli.session import who

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


def mcp(may_approve: MayApprove = False, templates: Templates = "", decide: Decide = "here") -> None:
    """Serve plans to agents over MCP, on standard input/output."""
    from plansurvive.client.cli.mcp.stdio import (
        serve,  # the library is slow to import, which `plan mcp --help` does without
    )
    from plansurvive.client.mcp.host import Host
    from plansurvive.client.mcp.server import build

    if sys.stdin.isatty():
        sys.stderr.write("An agent starts this command and speaks MCP with it; docs/mcp.md says how. End it: Ctrl-D\n")
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="plan mcp: %(message)s")
    names = tuple(filter(None, (name.strip() for name in templates.split(","))))
    host = Host(environment.settings(), environment.environ(), who(), may_approve, names, decide)
    if asyncio.run(serve(build(host))):
        raise KeyboardInterrupt
