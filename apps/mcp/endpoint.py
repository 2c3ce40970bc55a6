"""Serves /mcp: streamable HTTP of our MCP server, for requests that the entrance let through.

A request of the protocol 2026-07-28 stands for itself, so that any process which serves this state directory can
answer it. Clients of earlier versions have a session, in this process only: without one, nobody could be asked while a
call is under way. Sessions that are not used end; a client then begins another one, and plans do not notice.

Sessions of clients before 2026-07-28 live in one process, since without one no person could be asked during a call; two
processes behind one address need sticky sessions for them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from plansurvive.apps.mcp import roles
from plansurvive.apps.mcp.callers import PATH, Sender, callers
from plansurvive.apps.mcp.common.host import Caller, Host
from plansurvive.apps.mcp.common.host import Request as McpRequest
from plansurvive.apps.mcp.entrance import WELL_KNOWN, McpEntrance
from plansurvive.apps.mcp.server import build
from plansurvive.client.access import Role, SecretLink, person_of, public
from plansurvive.client.page.pages import Site
from plansurvive.plans.definition.parsing import MAX_BYTES

MAX_SESSIONS = 200
"""Of clients before 2026-07-28, at the same time."""
IDLE_SECONDS = 30 * 60.0
MAX_BODY = 2 * MAX_BYTES
"""Bytes of a request: a plan as text within JSON, with what is said beside it."""


class McpEndpoint:
    """The MCP server of one page. `server`: as `build` makes it, with whatever was added to it."""

    def __init__(self, server: MCPServer[Any], entrance: McpEntrance) -> None:
        self.entrance = entrance
        roles.guard(server)
        # Host and Origin were checked by the page's guard, against its one address.
        app = server.streamable_http_app(
            streamable_http_path=PATH,
            max_request_body_size=MAX_BODY,
            session_idle_timeout=IDLE_SECONDS,
            max_sessions=MAX_SESSIONS,
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
        del app  # its one route; who may use it is decided here
        self._manager = server.session_manager
        self._handle = AuthContextMiddleware(self._manager.handle_request)
        public(self)  # type: ignore[arg-type]  # the entrance and `roles` decide

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve sessions, until the end of the context ends them all."""
        async with self._manager.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request of a known person."""
        request = Request(scope)
        person_of(request)
        sender: Sender = request.state.sender
        # The library ties sessions, and what it hands to clients to send back, to this identity.
        claims = {"iss": sender.issuer} if sender.issuer else None
        user = AccessToken(token="", client_id=sender.client, scopes=[], subject=sender.person.name, claims=claims)
        await self._handle({**scope, "user": AuthenticatedUser(user)}, receive, send)

    def routes(self) -> list[BaseRoute]:
        """The addresses that it answers."""
        return [Route(PATH, self), Route(WELL_KNOWN, self.metadata), Route(WELL_KNOWN + PATH, self.metadata)]

    async def metadata(self, _request: Request) -> Response:
        """Who gives tokens for this server (RFC 9728)."""
        found = self.entrance.metadata()
        if found is None:
            raise HTTPException(404)
        return JSONResponse(found)


def endpoint(site: Site) -> McpEndpoint | None:
    """The endpoint of a page; None if its settings want none."""
    settings = site.settings
    if not settings.web_mcp:
        return None
    access = site.access
    host = Host(
        settings,
        site.environ,
        access.user if isinstance(access, SecretLink) else "",
        templates=settings.web_mcp_templates,
        deciding=settings.web_mcp_decide,
        hub=site.hub,
        calling=caller,
        connecting=site.connected,
    )
    return McpEndpoint(build(host), McpEntrance(access, callers(access, settings), settings))


def caller(request: McpRequest) -> Caller:
    """For whom a request over HTTP is made. Raises Forbidden without a person."""
    found: Any = request.request_context.request
    person = person_of(found)
    return Caller(
        person.name,
        verified=person.verified,
        is_remote=not isinstance(found.app.state.service.access, SecretLink),
        may_operate=person.may(Role.OPERATOR),
        may_decide=person.may(Role.APPROVER),
    )
