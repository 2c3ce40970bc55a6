"""How requests to a server at a URL are authorized: a bearer token by reference, or OAuth 2.1.

Tokens of a person who logged in (`plan mcp login`) are in the state directory, readable for the worker's user only.
Those of the worker itself (client_credentials) are in memory. No error and no log shows one.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plansurvive.features.tool_servers.log import FOLDER
from plansurvive.features.tool_servers.program import Site, unavailable
from plansurvive.features.tool_servers.references import secret_of
from plansurvive.features.tool_servers.tool_server import REDIRECT, OAuth, ToolServer
from plansurvive.features.tool_servers.web import Bearer
from plansurvive.plans.errors import PlanError, ToolError
from plansurvive.runtime.base.atomic_file import write_whole

if TYPE_CHECKING:
    from httpx2 import Auth
    from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthMetadata, OAuthToken


def auth_for(name: str, server: ToolServer, site: Site, state: Path) -> Auth | None:
    """What authorizes the requests to a server; None: nothing does. Raises ToolError MCP_UNAVAILABLE."""
    try:
        if server.token is not None:
            return Bearer(secret_of(server.token, site.directory, site.environ), server.url)
        if server.oauth is None:
            return None
        secret = server.oauth.client_secret
        known = secret_of(secret, site.directory, site.environ) if secret else ""
    except PlanError as error:
        raise unavailable(name, error.message) from None
    if server.oauth.grant == "client_credentials":
        return _of_worker(server.url, server.oauth, known)
    return _of_person(name, server, server.oauth, known, StoredTokens(state, name, server.url))


def _of_worker(url: str, oauth: OAuth, secret: str) -> Auth:
    from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider

    provider = ClientCredentialsOAuthProvider(
        url,
        MemoryTokens(),
        client_id=oauth.client_id,
        client_secret=secret,
        scope=oauth.scope or None,
        issuer=oauth.issuer or None,
    )
    provider.context.client_metadata = kept_scope(provider.context.client_metadata, oauth.scope)
    return provider


def _of_person(name: str, server: ToolServer, oauth: OAuth, secret: str, stored: StoredTokens) -> Auth:
    """Uses the tokens of a login, and renews them; it never asks a person itself."""
    from mcp.client.auth import OAuthClientProvider

    async def refuse(_: str) -> None:
        raise _not_logged_in(name)

    if not stored.are_there:
        raise _not_logged_in(name)
    metadata = metadata_of(oauth, secret, REDIRECT)
    provider = OAuthClientProvider(server.url, metadata, stored, redirect_handler=refuse, callback_handler=None)
    provider.context.oauth_metadata = stored.endpoints  # or the library would renew tokens at the server itself
    provider.context.token_expiry_time = stored.expires  # or it would notice their end by a refusal only
    return provider


def kept_scope(metadata: OAuthClientMetadata, scope: str) -> OAuthClientMetadata:
    """The same with a scope that stays: the library replaces it by what the server lists, and by none otherwise."""
    from mcp.shared.auth import OAuthClientMetadata

    class Scoped(OAuthClientMetadata):
        def __setattr__(self, name: str, value: Any) -> None:
            if name != "scope":
                super().__setattr__(name, value)

    return Scoped.model_validate(metadata.model_dump() | {"scope": scope}) if scope else metadata


def _not_logged_in(name: str) -> ToolError:
    return unavailable(name, f"a person has to log in to it, now or again; run `plan mcp login {name}`")


def metadata_of(oauth: OAuth, secret: str, redirect: str) -> OAuthClientMetadata:
    """What the authorization server is told of us."""
    from mcp.shared.auth import OAuthClientMetadata

    found = OAuthClientMetadata.model_validate(
        {
            "client_name": "plans-that-survive",
            "redirect_uris": [redirect],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "client_secret_post" if secret else "none",
        }
    )
    return kept_scope(found, oauth.scope)


class MemoryTokens:
    """Tokens of the worker itself, as long as a connection lasts."""

    def __init__(self) -> None:
        self._tokens: OAuthToken | None = None
        self._client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        """The tokens."""
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep the tokens."""
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Who we are to the authorization server."""
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep who we are."""
        self._client = client_info


class StoredTokens:
    """Tokens of a login, in a private file of the state directory. Those for another URL count as none."""

    def __init__(self, state: Path, name: str, url: str) -> None:
        self.path = state / FOLDER / f"{name}.tokens.json"
        self._url = url

    @property
    def endpoints(self) -> OAuthMetadata | None:
        """What the authorization server said of itself at the login."""
        from mcp.shared.auth import OAuthMetadata

        found = self._read().get("endpoints")
        return OAuthMetadata.model_validate(found) if found else None

    def keep_endpoints(self, metadata: OAuthMetadata | None) -> None:
        """Store what the authorization server says of itself."""
        if metadata is not None:
            self._write(endpoints=metadata.model_dump(mode="json", exclude_none=True))

    @property
    def expires(self) -> float | None:
        """When the token ends, in seconds since 1970; None: unknown."""
        found = self._read().get("expires")
        return float(found) if isinstance(found, int | float) else None

    @property
    def are_there(self) -> bool:
        """Whether somebody has logged in."""
        return bool(self._read().get("tokens"))

    async def get_tokens(self) -> OAuthToken | None:
        """The tokens."""
        from mcp.shared.auth import OAuthToken

        found = self._read().get("tokens")
        return OAuthToken.model_validate(found) if found else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Store the tokens."""
        expires = None if tokens.expires_in is None else time.time() + tokens.expires_in
        self._write(tokens=tokens.model_dump(mode="json", exclude_none=True), expires=expires)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Who we are to the authorization server."""
        from mcp.shared.auth import OAuthClientInformationFull

        found = self._read().get("client")
        return OAuthClientInformationFull.model_validate(found) if found else None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Store who we are."""
        self._write(client=client_info.model_dump(mode="json", exclude_none=True))

    def _read(self) -> dict[str, Any]:
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as file:
                if os.fstat(descriptor).st_mode & 0o077 or os.fstat(descriptor).st_uid != os.geteuid():
                    return {}  # others may know or have written them
                found = json.loads(file.read())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) and found.get("url") == self._url else {}

    def _write(self, **fields: Any) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(self.path, json.dumps(self._read() | {"url": self._url} | fields).encode())
