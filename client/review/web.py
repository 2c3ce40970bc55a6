"""The review screen in a browser: served on 127.0.0.1 to whoever has the link, and to no other web page.

The screen approves commands, so the link holds a secret; it becomes a cookie that other sites cannot use, and requests
that name another host or come from another site are refused.
"""

from __future__ import annotations

import asyncio
import secrets
import shlex
import socket
import sys
from collections.abc import Callable

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from textual_serve.server import Server

from runtime.server import HOST

COOKIE = "plan_review"


def serve(plan: str, say: Callable[[str], None]) -> None:
    """Serve until interrupted; the link is told by `say` when it works."""
    asyncio.run(_serve(plan, say))


async def _serve(plan: str, say: Callable[[str], None]) -> None:
    with socket.create_server((HOST, 0)) as listening:
        server = ReviewServer(plan, listening.getsockname()[1])
        runner = web.AppRunner(await server._make_app())
        await runner.setup()
        try:
            await web.SockSite(runner, listening).start()
            say(f"Control-C ends it; the plan does not depend on it.\nThe review screen of plan {plan}: {server.link}")
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
        """Where a browser finds it."""
        return f"{self.public_url}/?key={self._secret}"

    async def on_startup(self, app: web.Application) -> None:
        """Nothing to say: the link was told."""

    async def _make_app(self) -> web.Application:
        app = await super()._make_app()
        app.middlewares.append(self._guard())
        return app

    def _guard(self) -> Middleware:
        @web.middleware
        async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
            given = request.query.get("key", "") if request.path == "/" else ""
            known = secrets.compare_digest((given or request.cookies.get(COOKIE, "")).encode(), self._secret.encode())
            if not known or not self._is_own(request):
                raise web.HTTPForbidden(text="Open the link that `plan review --web` printed.")
            response = await handler(request)
            if given:
                response.set_cookie(COOKIE, self._secret, httponly=True, samesite="Strict")
            return response

        return guard

    def _is_own(self, request: web.Request) -> bool:
        own = f"{self.host}:{self.port}"
        return request.host == own and request.headers.get("Origin", f"http://{own}") == f"http://{own}"
