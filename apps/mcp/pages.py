"""The MCP server at `/mcp` of the web page, and `/connect`: how an agent connects to it.

The token is shown only to who asks for it.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from plansurvive.apps.mcp.callers import PATH, audience, token
from plansurvive.apps.mcp.endpoint import endpoint
from plansurvive.client.access import Role, SecretLink, needs
from plansurvive.client.access.forms import form_of
from plansurvive.client.access.login import OidcAccess
from plansurvive.client.page.pages import Link, done, page, site_of

NAV = "agents"
LINKS = {"agents": Link(NAV, "/connect", "connect one")}
MOUNT = endpoint


async def show(request: Request) -> Response:
    """The address, and what an agent sends with its requests."""
    return _page(request)


@needs(Role.OPERATOR)
async def reveal(request: Request) -> Response:
    """The same with the token. It is in no other page, and in no address."""
    await form_of(request)
    site = site_of(request)
    return _page(request, token(site.settings) if isinstance(site.access, SecretLink) else "")


@needs(Role.OPERATOR)
async def renew(request: Request) -> Response:
    """Another token: agents with the old one are refused from now on."""
    await form_of(request)
    site = site_of(request)
    if isinstance(site.access, SecretLink):
        token(site.settings, new=True)
    return done(request, "/connect", "There is a new token; agents with the old one are refused.")


def _page(request: Request, shown: str = "") -> Response:
    site = site_of(request)
    access, settings = site.access, site.settings
    login = "link" if isinstance(access, SecretLink) else "oidc" if isinstance(access, OidcAccess) else "proxy"
    return page(
        request, "mcp/connect.html", nav=NAV, login=login, address=access.origin + PATH, token=shown,
        is_served=settings.web_mcp, templates=settings.web_mcp_templates, audience=audience(access, settings),
    )  # fmt: skip


routes = [
    Route("/connect", show),
    Route("/connect", reveal, methods=["POST"]),
    Route("/connect/renew", renew, methods=["POST"]),
]
