"""The review screen in a browser, served on 127.0.0.1 and only to those who have the link.

The screen can approve commands, so the link contains a secret. It becomes a SameSite cookie; requests with another Host
or from another origin are refused.
"""

from __future__ import annotations

import asyncio
import secrets
import shlex
import socket
import sys
from collections.abc import Callable

import aiohttp_jinja2
import jinja2
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from textual_serve.server import Server

from runtime.server import HOST

COOKIE = "plan_review"


def serve(plan: str, say: Callable[[str], None]) -> None:
    """Serve until interrupted; `say` receives the link once the server is up."""
    asyncio.run(_serve(plan, say))


async def _serve(plan: str, say: Callable[[str], None]) -> None:
    with socket.create_server((HOST, 0)) as listening:
        server = ReviewServer(plan, listening.getsockname()[1])
        runner = web.AppRunner(server.application())
        await runner.setup()
        try:
            await web.SockSite(runner, listening).start()
            say(f"Press Ctrl-C to stop serving; the plan does not depend on it.\nReview of plan {plan}: {server.link}")
            await asyncio.Event().wait()
        finally:
            await runner.cleanup()


class ReviewServer(Server):
    """Runs `plan review` once for every browser that connects."""

    def __init__(self, plan: str, port: int) -> None:
        command = shlex.join([sys.executable, "-m", "client", "review", plan])
        super().__init__(command, host=HOST, port=port, title=f"plan {plan}")
        self._secret = secrets.token_urlsafe(24)

    @property
    def link(self) -> str:
        """The URL to open, with the secret."""
        return f"{self.public_url}/?key={self._secret}"

    def application(self) -> web.Application:
        """The aiohttp application: the routes of textual-serve's page, behind the guard."""
        app = web.Application(middlewares=[self._guard()])
        aiohttp_jinja2.setup(app, loader=jinja2.FileSystemLoader(self.templates_path))
        app.router.add_get("/", self.handle_index, name="index")
        app.router.add_get("/ws", self.handle_websocket, name="websocket")
        app.router.add_get("/download/{key}", self.handle_download, name="download")
        app.router.add_static("/static", self.statics_path, name="static")
        app.on_shutdown.append(self.on_shutdown)
        return app

    def _guard(self) -> Middleware:
        @web.middleware
        async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
            key = request.query.get("key", "") if request.path == "/" else ""
            known = secrets.compare_digest((key or request.cookies.get(COOKIE, "")).encode(), self._secret.encode())
            if not known or not self._is_own(request):
                raise web.HTTPForbidden(text="Open the full link that `plan review --web` printed.")
            response = await handler(request)
            if key:
                response.set_cookie(COOKIE, self._secret, httponly=True, samesite="Strict")
            return response

        return guard

    def _is_own(self, request: web.Request) -> bool:
        own = f"{self.host}:{self.port}"
        return request.host == own and request.headers.get("Origin", f"http://{own}") == f"http://{own}"
