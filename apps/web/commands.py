"""The command `plan web`."""

from __future__ import annotations

import webbrowser
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import typer

from plansurvive.client.cli.terminal import environment, output, signals
from plansurvive.client.cli.terminal.output import say
from plansurvive.client.cli.terminal.session import who
from plansurvive.client.page.served_page import ServedPage, recorded, served
from plansurvive.plans.errors import PlanError
from plansurvive.runtime.background_worker import ensure_worker
from plansurvive.runtime.connect import Connection, reach
from plansurvive.runtime.settings import Settings

if TYPE_CHECKING:
    from plansurvive.client.access import Access

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
    settings = environment.settings().with_flags(web_listen=listen)
    page = served(settings) if port is None and listen is None else None
    if page is None:
        signals.run(_web(settings, port, open_))
        return
    say("The page is being served already.")
    _show(page, "/", open_)


def review(settings: Settings, plan: str) -> None:
    """Show where a plan is reviewed on the page; serve the page if nobody does. For `plan review --web`."""
    path = f"/plans/{quote(plan, safe='')}/draft"
    page = served(settings)
    if page is not None:
        _show(page, path, False)
    else:
        signals.run(_web(settings, None, False, path))


async def beside(settings: Settings, connection: Connection) -> None:
    """Serve the page beside something else in this process, until cancelled. Says what keeps it from that."""
    from plansurvive.apps.web.serve import serve

    with ExitStack() as record:

        def ready(access: Access) -> None:
            page = record.enter_context(recorded(settings, access.link()))
            output.show(f"page    {page.link}")

        try:
            await serve(settings, environment.environ(), who(), ready, connection=connection)
        except PlanError as error:
            say(f"The web page is not served: {error.message}")


async def _web(settings: Settings, port: int | None, open_: bool, path: str = "/") -> None:
    from plansurvive.apps.web.serve import serve

    with ExitStack() as record:

        def ready(access: Access) -> None:
            say("Press Ctrl-C to stop serving; plans do not depend on it.")
            _show(record.enter_context(recorded(settings, access.link())), path, open_)

        await serve(settings, environment.environ(), who(), ready, port=port, connection=await _connection(settings))


def _show(page: ServedPage, path: str, open_: bool) -> None:
    output.show(page.link_to(path))
    if open_:
        webbrowser.open(page.link_to(path))


async def _connection(settings: Settings) -> Connection | None:
    """A connection, with a worker; None if that cannot be: the page says so, and recovers when it can."""
    try:
        connection = await reach(settings, say, revives=True)
        await ensure_worker(settings, connection)
    except PlanError as error:
        say(error.message)
        return None
    return connection
