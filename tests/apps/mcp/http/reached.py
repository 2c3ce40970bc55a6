"""The MCP server of a page as agents reach it: over real HTTP, with the client of the official SDK."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import httpx2
from mcp import Client as McpClient
from mcp.client.streamable_http import streamable_http_client
from temporalio.client import Client

from plansurvive.apps.mcp.callers import token
from plansurvive.apps.web.app import application
from plansurvive.apps.web.common.service import Service
from plansurvive.client.access import Access, SecretLink, access_for
from plansurvive.runtime.connect import Connection, Origin
from plansurvive.runtime.server import HOST
from plansurvive.runtime.settings import Settings
from tests.apps.web.access.serving import on_socket


@dataclass(frozen=True)
class Page:
    """A page that is served, and its MCP server."""

    origin: str
    access: Access
    settings: Settings

    @property
    def token(self) -> str:
        """The token of this user's agents."""
        return token(self.settings)

    @property
    def link(self) -> SecretLink:
        """How the person came in."""
        assert isinstance(self.access, SecretLink)
        return self.access

    async def asked(self, method: str = "POST", path: str = "/mcp", **headers: str) -> httpx.Response:
        """The answer to a ping, with these headers (`_` for `-`)."""
        return await self.sent({"jsonrpc": "2.0", "id": 1, "method": "ping"}, method, path, **headers)

    async def sent(
        self, body: dict[str, Any], method: str = "POST", path: str = "/mcp", **headers: str
    ) -> httpx.Response:
        """The answer to a message."""
        given = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        async with httpx.AsyncClient() as client:
            return await client.request(method, self.origin + path, headers=given, json=body)

    @asynccontextmanager
    async def agent(self, token: str, mode: Any = "auto", **options: Any) -> AsyncIterator[McpClient]:
        """An agent with this token."""
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(headers=headers) as http:
            transport = streamable_http_client(f"{self.origin}/mcp", http_client=http)
            async with McpClient(transport, mode=mode, **options) as agent:
                yield agent


@asynccontextmanager
async def reached(environ: Mapping[str, str], client: Client | None = None) -> AsyncIterator[Page]:
    """A page with these settings on a free port."""
    with socket.create_server((HOST, 0)) as listening:
        origin = f"http://{HOST}:{listening.getsockname()[1]}"
        settings = Settings.read({**environ, "PLANS_WEB_URL": origin})
        access = access_for(settings, environ, "ann", origin.removeprefix("http://"))
        connection = Connection(client, "tests", Origin.CONFIGURED) if client else None
        service = Service(settings, environ, access, connection)
        async with on_socket(application(service), listening):
            yield Page(origin, access, settings)
        await service.close()
