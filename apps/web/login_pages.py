"""The pages of the login: to the issuer, back from it, and out."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from plansurvive.apps.web.common.rendering import page
from plansurvive.apps.web.common.service import service_of
from plansurvive.client.access.forms import form_of
from plansurvive.client.access.login import CALLBACK, OidcAccess
from plansurvive.client.access.people import Role, needs


def _oidc(request: Request) -> OidcAccess:
    access = service_of(request).access
    if not isinstance(access, OidcAccess):
        raise HTTPException(404)
    return access


async def login(request: Request) -> Response:
    """Send the browser to the issuer."""
    return await _oidc(request).begin(request)


async def callback(request: Request) -> Response:
    """The browser comes back from the issuer."""
    return await _oidc(request).complete(request)


@needs(Role.VIEWER)
async def logout(request: Request) -> Response:
    """End the session."""
    await form_of(request)
    return service_of(request).access.leave(request, RedirectResponse("/logged-out", 303))


async def logged_out(request: Request) -> Response:
    """Say so. Not a redirect to the login, which many issuers answer without asking."""
    again = "/login" if isinstance(service_of(request).access, OidcAccess) else ""
    return page(request, "logged_out.html", again=again)


routes = [
    Route("/login", login),
    Route(CALLBACK, callback),
    Route("/logout", logout, methods=["POST"]),
    Route("/logged-out", logged_out),
]
