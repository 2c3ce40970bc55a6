"""`/connect`: how an agent connects to the MCP server of this page; its token is shown only to who asks for it."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from plansurvive.client.access import Role, SecretLink, needs
from plansurvive.client.access.forms import form_of
from plansurvive.client.access.oidc.login import OidcAccess
from plansurvive.client.mcp.http.callers import PATH, audience, token
from plansurvive.client.pages import done
from plansurvive.client.web.rendering import page
from plansurvive.client.web.service import service_of

NAV = "agents"


async def show(request: Request) -> Response:
    """The address, and what an agent sends with its requests."""
    return _page(request)


@needs(Role.OPERATOR)
async def reveal(request: Request) -> Response:
    """The same with the token. It is in no other page, and in no address."""
    await form_of(request)
    service = service_of(request)
    return _page(request, token(service.settings) if isinstance(service.access, SecretLink) else "")


@needs(Role.OPERATOR)
async def renew(request: Request) -> Response:
    """Another token: agents with the old one are refused from now on."""
    await form_of(request)
    service = service_of(request)
    if isinstance(service.access, SecretLink):
        token(service.settings, new=True)
    return done(request, "/connect", "There is a new token; agents with the old one are refused.")


def _page(request: Request, shown: str = "") -> Response:
    service = service_of(request)
    access, settings = service.access, service.settings
    login = "link" if isinstance(access, SecretLink) else "oidc" if isinstance(access, OidcAccess) else "proxy"
    return page(
        request, "library/connect.html", nav=NAV, login=login, address=access.origin + PATH, token=shown,
        is_served=settings.web_mcp, templates=settings.web_mcp_templates, audience=audience(access, settings),
    )  # fmt: skip
