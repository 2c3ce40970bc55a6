"""Stands in front of every request: own Host and Origin only, a person, bounds, headers that keep browsers strict."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol
from urllib.parse import urlencode

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from plansurvive.client.access.access import Access, Unknown
from plansurvive.client.access.browser import (
    HEADERS,
    MAX_HEAD,
    MAX_HEADERS,
    MAX_TARGET,
    REFERRER,
    SAFE_METHODS,
    SECURE,
    refusal,
)
from plansurvive.client.access.people import Forbidden
from plansurvive.plans.errors import PlanError

STATIC = "/static/"
"""Below it, everything is the same for everybody and needs no session."""


class SlowBody(PlanError):
    """A request whose body does not arrive in time."""

    code = "BODY_TOO_SLOW"


Refuse = Callable[[Request, int, str], Awaitable[Response]]


class Entrance(Protocol):
    """A way in for programs: some addresses, and who sends a request there by what it carries, never by a cookie."""

    stream_seconds: float
    """Time after which an answer that is still being sent ends."""

    def covers(self, path: str) -> bool:
        """Whether an address is one of its own."""

    async def admit(self, request: Request) -> Response | None:
        """The answer to a request that goes no further; None lets it through, with its person."""


class Guard:
    """ASGI middleware. `refused` makes the answer to a request that is not let through, of its status and reason."""

    def __init__(self, app: ASGIApp, access: Access, refused: Refuse, entrances: Sequence[Entrance] = ()) -> None:
        self._app = app
        self._access = access
        self._refused = refused
        self._entrances = entrances
        self._added = HEADERS | (SECURE if access.is_secure else {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it."""
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        if scope["type"] != "http":
            return None
        begun = False

        async def guarded(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                headers = MutableHeaders(scope=message)
                headers.update({n: text for n, text in self._added.items() if n != REFERRER or n not in headers})
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        request = Request(scope)
        entrance = next((each for each in self._entrances if each.covers(request.url.path)), None)
        answer = await self._answer(request, entrance)
        if answer is not None:
            return await answer(scope, receive, guarded)
        if "text/event-stream" not in request.headers.get("accept", "") and entrance is None:
            return await self._app(scope, _in_time(receive, self._access.body_seconds), guarded)
        try:
            async with asyncio.timeout((entrance or self._access).stream_seconds):
                await self._app(scope, _in_time(receive, self._access.body_seconds), guarded)
        except TimeoutError:
            if begun:
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        return None

    async def _answer(self, request: Request, entrance: Entrance | None) -> Response | None:
        """The answer to a request that goes no further; None lets it through."""
        access, target = self._access, request.scope["raw_path"] + request.scope["query_string"]
        by_program = entrance is not None
        why = refusal(request.method, request.headers.raw, access.host, access.origin, by_program=by_program)
        if why:
            return await self._refused(request, 403, why)
        if len(target) > MAX_TARGET:
            return await self._refused(request, 414, "The address is too long.")
        if len(request.headers) > MAX_HEADERS or sum(len(k) + len(v) for k, v in request.headers.raw) > MAX_HEAD:
            return await self._refused(request, 431, "The headers of the request are too large.")
        if entrance is not None:
            return await entrance.admit(request)
        if request.url.path.startswith(STATIC) and request.method in SAFE_METHODS:
            return None
        answer = access.entering(request)
        if isinstance(answer, Response):
            return answer
        if answer is not None:
            return await self._refused(request, answer.status, answer.sentence)
        if access.is_public(request.url.path):
            request.state.csrf = access.csrf_of_path(request.url.path)
            return None
        try:
            known = access.known(request)
        except Forbidden as error:
            return await self._refused(request, 403, error.message)
        if known is None:
            return await self._unknown(request, access.unknown(request))
        request.state.person, request.state.csrf, request.state.session = known.person, known.csrf, known.session
        return None

    async def _unknown(self, request: Request, answer: Unknown) -> Response:
        is_page = request.method in SAFE_METHODS and request.headers.get("sec-fetch-mode", "navigate") == "navigate"
        if answer.to and is_page:
            query = f"?{request.url.query}" if request.url.query else ""
            return RedirectResponse(f"{answer.to}?{urlencode({'next': request.url.path + query})}", 303)
        return await self._refused(request, answer.status, answer.sentence)


def _in_time(receive: Receive, seconds: float) -> Receive:
    """Receive a body as long as its time lasts; then raises SlowBody."""
    until = asyncio.get_running_loop().time() + seconds
    whole = False

    async def received() -> Message:
        nonlocal whole
        if whole:  # waiting for the browser to go away, while the answer is sent
            return await receive()
        try:
            async with asyncio.timeout_at(until):
                message = await receive()
        except TimeoutError:
            raise SlowBody("The form took too long to arrive. Send it again.") from None
        whole = not message.get("more_body", False)
        return message

    return received
