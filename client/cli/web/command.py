"""The command `plan web`."""

from __future__ import annotations

import asyncio
import webbrowser
from typing import Annotated

import typer

from client.cli import environment, output
from client.cli.output import say
from client.cli.session import who
from plans.errors import PlanError
from runtime.background_worker import ensure_worker
from runtime.connect import Connection, reach
from runtime.settings import Settings

Port = Annotated[
    int | None, typer.Option("--port", metavar="N", min=0, max=65_535, help="Port; 0 is any free one. Default: 7243.")
]
Listen = Annotated[
    str | None,
    typer.Option("--listen", metavar="HOST:PORT", help="Address to serve at; beyond this machine only with a login."),
]
Open = Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser as well.")]


def web(port: Port = None, listen: Listen = None, open_: Open = False) -> None:
    """Serve the web page: plans, decisions, drafts. Runs until Ctrl-C; plans do not depend on it."""
    asyncio.run(_web(environment.settings().with_flags(web_listen=listen), port, open_))


async def _web(settings: Settings, port: int | None, open_: bool) -> None:
    from client.web.access import Access
    from client.web.serve import serve

    def ready(access: Access) -> None:
        say("Press Ctrl-C to stop serving; plans do not depend on it.")
        output.show(access.link())
        if open_:
            webbrowser.open(access.link())

    await serve(settings, environment.environ(), who(), ready, port=port, connection=await _connection(settings))


async def _connection(settings: Settings) -> Connection | None:
    """A connection, with a worker; None if that cannot be: the page says so, and recovers when it can."""
    try:
        connection = await reach(settings, say)
        await ensure_worker(settings, connection)
    except PlanError as error:
        say(error.message)
        return None
    return connection
