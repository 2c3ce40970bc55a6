"""Stands in front of every request: own Host and Origin only, a session, and headers that keep browsers strict.

The page can approve commands. A request with another Host comes from a page whose name was pointed at this machine
(DNS rebinding); one with another Origin, from another site. Both are refused before anything else is looked at.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import urlencode

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from client.web.access.link import SecretLink

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=()",
}
SAFE_METHODS = frozenset(("GET", "HEAD"))
STATIC = "/static/"
"""Below it, everything is the same for everybody and needs no session."""
ENTER = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>Opening</title>'
    '<meta http-equiv="refresh" content="0;url={url}"><p><a href="{url}">Open the page</a></p></html>'
)
"""Sent with the cookie. The page loads itself anew without the secret in its address: a redirect would not send a
SameSite=Strict cookie if the link was opened from another site, such as a mail reader."""
Refuse = Callable[[Request, int, str], Awaitable[Response]]


class Guard:
    """ASGI middleware. `refused` makes the answer to a request that is not let through, of its status and reason."""

    def __init__(self, app: ASGIApp, access: SecretLink, refused: Refuse) -> None:
        self._app = app
        self._access = access
        self._refused = refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it."""
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        if scope["type"] != "http":
            return None

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        answer = await self._answer(Request(scope))
        return await (answer or self._app)(scope, receive, guarded)

    async def _answer(self, request: Request) -> Response | None:
        """The answer to a request that goes no further; None lets it through."""
        if not self._is_own(request):
            return await self._refused(request, 403, "This request does not come from the page itself.")
        if request.url.path.startswith(STATIC) and request.method in SAFE_METHODS:
            return None
        if "key" in request.query_params and request.method in SAFE_METHODS:
            if self._access.is_key(request.query_params["key"]):
                return self._entered(request)
            return await self._refused(request, 403, _OPEN_LINK)
        cookie = request.cookies.get(self._access.cookie, "")
        person = self._access.person(cookie)
        if person is None:
            return await self._refused(request, 403, _OPEN_LINK)
        request.state.person = person
        request.state.csrf = self._access.csrf(cookie)
        request.state.session = cookie
        return None

    def _is_own(self, request: Request) -> bool:
        origin = request.headers.get("origin", self._access.origin)
        if request.headers.get("host") != self._access.host or origin != self._access.origin:
            return False
        site = request.headers.get("sec-fetch-site", "same-origin")
        return request.method in SAFE_METHODS or site in ("same-origin", "none")

    def _entered(self, request: Request) -> Response:
        rest = [(name, value) for name, value in request.query_params.multi_items() if name != "key"]
        path = "/" + request.scope["raw_path"].decode("ascii").lstrip("/")
        url = path + (f"?{urlencode(rest)}" if rest else "")
        response = HTMLResponse(ENTER.format(url=url.replace("&", "&amp;").replace('"', "%22").replace("<", "%3C")))
        response.set_cookie(self._access.cookie, self._access.new_session(), httponly=True, samesite="strict")
        return response


_OPEN_LINK = "Open the full link that `plan web` printed."
