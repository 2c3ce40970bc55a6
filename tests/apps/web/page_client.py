"""A browser without a browser: requests to the application in this process, over ASGI, with the session of the link."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import httpx
from starlette.applications import Starlette
from temporalio.client import Client

from plansurvive.apps.web.app import application
from plansurvive.apps.web.common.service import Service
from plansurvive.client.access import SecretLink
from plansurvive.runtime.connect import Connection, Origin
from plansurvive.runtime.settings import Settings

HOST = "127.0.0.1:7243"
ORIGIN = f"http://{HOST}"
SECRET = "the-secret-of-these-tests-is-long-enough"


def access_of(user: str = "ann") -> SecretLink:
    """The policy of a page that this user serves."""
    return SecretLink(SECRET, HOST, user)


def service_for(
    settings: Settings, client: Client | None, environ: Mapping[str, str] | None = None, user: str = "ann"
) -> Service:
    """A service with an open connection; with None, one that has to look for a server itself."""
    connection = Connection(client, "tests", Origin.CONFIGURED) if client else None
    return Service(settings, environ or {}, access_of(user), connection)


def secret_link(service: Service) -> SecretLink:
    """The policy of a page that is opened with a link."""
    assert isinstance(service.access, SecretLink)
    return service.access


def pages_of(service: Service) -> Starlette:
    """The application without the MCP server beside it, which takes longer to make than most tests of pages take."""
    return application(service, beside=())


@asynccontextmanager
async def browsing(service: Service, *, inside: bool = True) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the application. `inside`: it has opened the link, and sends its form token with every POST."""
    transport = httpx.ASGITransport(pages_of(service), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=ORIGIN, headers={"Origin": ORIGIN}) as browser:
        if inside:
            answer = await browser.get("/", params={"key": secret_link(service).secret})
            assert answer.status_code == 200, answer.text
        try:
            yield browser
        finally:
            await service.close()


def csrf_of(browser: httpx.AsyncClient, service: Service) -> str:
    """The form token of the browser's session."""
    return service.access.csrf(browser.cookies[service.access.cookie])
