"""The page as it is really served, with a record of what reached it: for attacks by browsers and by sockets."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from temporalio.client import Client

from plansurvive.apps.web.app import application
from plansurvive.apps.web.common.service import Service
from plansurvive.apps.web.limits import server_options
from plansurvive.client.access import Role, SecretLink, needs
from plansurvive.client.access.forms import form_of
from plansurvive.runtime.connect import Connection, Origin
from plansurvive.runtime.server import HOST
from plansurvive.runtime.settings import Settings
from tests.kit.waiting import until


@dataclass(frozen=True)
class Came:
    """A request that reached the server, and what it was answered."""

    method: str
    path: str
    status: int
    had_cookie: bool


@dataclass
class Page:
    """A page that is served."""

    origin: str
    access: SecretLink
    came: list[Came] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    """What the handler `/change` was sent, once it took it."""

    async def change(self, request: Request) -> Response:
        """Something that a person may do."""
        form = await form_of(request)
        self.changed.append(str(form.get("what")))
        return PlainTextResponse("changed")

    def statuses(self, method: str, path: str) -> list[tuple[int, bool]]:
        """Of the requests for a path: what they were answered, and whether they had the cookie."""
        return [(each.status, each.had_cookie) for each in self.came if (each.method, each.path) == (method, path)]


class Server(uvicorn.Server):
    """A server that leaves the signals of the process that runs the tests alone."""

    @contextlib.contextmanager
    def capture_signals(self) -> Any:
        """Change nothing."""
        yield


@asynccontextmanager
async def on_socket(app: ASGIApp, listening: socket.socket, **options: Any) -> AsyncIterator[None]:
    """Serve an application on a socket that listens already."""
    server = Server(uvicorn.Config(app, **(server_options() | options)))
    running = asyncio.create_task(server.serve([listening]))
    try:
        await until(lambda: server.started, "the server answers")
        yield
    finally:
        server.should_exit = True
        await running


@asynccontextmanager
async def served(
    settings: Settings, client: Client | None = None, routes: Sequence[BaseRoute] = (), **options: Any
) -> AsyncIterator[Page]:
    """The page behind a secret link, with `/change` as one more thing to do."""
    with socket.create_server((HOST, 0)) as listening:
        host = f"{HOST}:{listening.getsockname()[1]}"
        access = SecretLink("secret-of-the-attacked-page-in-tests", host, "ann")
        page = Page(f"http://{host}", access)
        connection = Connection(client, "tests", Origin.CONFIGURED) if client else None
        app = application(Service(settings, {}, access, connection))
        change = Route("/change", needs(Role.APPROVER)(page.change), methods=["POST"])
        app.router.routes[:0] = [change, *routes]
        async with on_socket(_recorded(app, page), listening, **options):
            yield page


def _recorded(app: ASGIApp, page: Page) -> ASGIApp:
    async def recording(scope: Scope, receive: Receive, send: Send) -> None:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                cookies = b";".join(value for name, value in scope["headers"] if name == b"cookie")
                had = page.access.cookie.encode() in cookies
                page.came.append(Came(scope["method"], scope["path"], message["status"], had))
            await send(message)

        await app(scope, receive, sending)

    return recording
