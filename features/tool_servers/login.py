"""A person logs in to a server of tools, so that workers may act for them there (OAuth 2.1, authorization code, PKCE).

The browser comes back to a port of this machine, which is open for as long as the login takes. The tokens go to a
private file of the state directory, where workers find and renew them.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from plansurvive.features.tool_servers.references import secret_of
from plansurvive.features.tool_servers.servers import file_of, read_servers
from plansurvive.features.tool_servers.tool_server import REDIRECT, OAuth, ToolServer
from plansurvive.plans.errors import PlanError
from plansurvive.runtime.setting_groups.web import is_loopback
from plansurvive.runtime.settings import Settings

if TYPE_CHECKING:
    from mcp.shared.auth import AuthorizationCodeResult

    from plansurvive.features.tool_servers.tokens import StoredTokens

PATIENCE = 600.0
"""Seconds that a person has to log in."""
MAX_REQUEST = 16_384
_PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\nDone. You can close this page.\n"


async def log_in(settings: Settings, name: str, show: Callable[[str], None], patience: float = PATIENCE) -> int:
    """Have a person log in to a server of mcp.toml; returns the number of its tools. `show` is given the URL to open.

    Raises PlanError: BAD_ARGUMENTS for a server that needs no login, MCP_LOGIN_FAILED.
    """
    server = read_servers(settings).get(name)
    if server is None or server.oauth is None or server.oauth.grant != "authorization_code":
        text = f"'{name}' is not a server of mcp.toml with `oauth.grant = \"authorization_code\"`; no login is needed"
        raise PlanError(text, "BAD_ARGUMENTS")
    try:
        async with asyncio.timeout(patience):
            return await _logged_in(settings, name, server, server.oauth, show)
    except TimeoutError:
        raise PlanError(
            f"the login to '{name}' was not done within {patience:g} seconds; try again", "MCP_LOGIN_FAILED"
        ) from None


async def _logged_in(
    settings: Settings, name: str, server: ToolServer, oauth: OAuth, show: Callable[[str], None]
) -> int:
    from mcp.client.auth import OAuthClientProvider

    from plansurvive.activities.network.address_policy import AddressPolicy
    from plansurvive.activities.network.own_servers import own_servers
    from plansurvive.features.tool_servers.server_connection import Connection
    from plansurvive.features.tool_servers.tokens import StoredTokens, metadata_of
    from plansurvive.features.tool_servers.web import Web

    secret = secret_of(oauth.client_secret, file_of(settings).parent, os.environ) if oauth.client_secret else ""
    stored = StoredTokens(settings.state_dir, name, server.url)
    stored.path.unlink(missing_ok=True)
    async with _returning() as (port, came_back):
        metadata = metadata_of(oauth, secret, f"{REDIRECT}:{port}/callback")
        if oauth.client_id:
            await _keep_client(stored, oauth, secret, metadata.redirect_uris)

        async def open_page(url: str) -> None:
            stored.keep_endpoints(provider.context.oauth_metadata)
            show(_checked(url))

        async def wait() -> AuthorizationCodeResult:
            return await asyncio.shield(came_back)

        provider = OAuthClientProvider(server.url, metadata, stored, open_page, wait)
        wire = Web(name, server, AddressPolicy.of(settings.http_allow, partial(own_servers, settings, "")), provider)

        async def opened() -> Web:
            return wire

        connection = Connection(opened, "", PATIENCE)
        try:
            client = await connection.client()
            return len((await client.list_tools()).tools)
        except Exception as error:
            raise PlanError(f"the login to '{name}' failed: {error}", "MCP_LOGIN_FAILED") from None
        finally:
            await connection.close()


async def _keep_client(stored: StoredTokens, oauth: OAuth, secret: str, redirects: object) -> None:
    from mcp.shared.auth import OAuthClientInformationFull

    known = {
        "client_id": oauth.client_id,
        "client_secret": secret or None,
        "redirect_uris": redirects,
        "token_endpoint_auth_method": "client_secret_post" if secret else "none",
    }
    await stored.set_client_info(OAuthClientInformationFull.model_validate(known))


def _checked(url: str) -> str:
    """The page to log in at, as the server gave it: what a browser may open, and a terminal may show."""
    parts = urlsplit(url)
    is_here = parts.scheme == "http" and is_loopback(parts.hostname or "")
    if not url.isascii() or not url.isprintable() or not (parts.scheme == "https" or is_here):
        raise PlanError("the server leads to a page that is not https", "MCP_LOGIN_FAILED")
    return url


@asynccontextmanager
async def _returning() -> AsyncIterator[tuple[int, asyncio.Future[AuthorizationCodeResult]]]:
    """A port of this machine to which the browser returns, and what it brings. Anything else is not answered."""
    from mcp.shared.auth import AuthorizationCodeResult

    came_back: asyncio.Future[AuthorizationCodeResult] = asyncio.get_running_loop().create_future()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = (await reader.read(MAX_REQUEST)).split(b"\r\n")[0].decode("ascii", "replace").split(" ")
        url = urlsplit(line[1] if len(line) == 3 else "")
        given = {key: values[0] for key, values in parse_qs(url.query).items()}
        if line[0] == "GET" and url.path == "/callback" and ("code" in given or "error" in given):
            writer.write(_PAGE)
            await writer.drain()
            if not came_back.done():
                found = {key: given.get(key) for key in ("state", "iss")}
                came_back.set_result(AuthorizationCodeResult(code=given.get("code", ""), **found))
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as listening:
        yield listening.sockets[0].getsockname()[1], came_back
