"""Who sends a request to /mcp: by this page's token, by an access token of the issuer, or by the proxy's header.

A cookie never counts: what a browser sends by itself would let other pages call tools.

The token is not the page's link: an agent keeps it in a file, and must not be able to open pages that decide. It is
read for each request, so a new one counts at once.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from starlette.requests import Request

from plansurvive.client.access.access import Access, Unknown
from plansurvive.client.access.link import Attempts, SecretLink
from plansurvive.client.access.login import OidcAccess
from plansurvive.client.access.people import Person
from plansurvive.client.access.provider import LoginFailed
from plansurvive.runtime.private_files import secret
from plansurvive.runtime.settings import Settings

PATH = "/mcp"
TOKEN_FILE = "mcp.token"  # noqa: S105  # a name
"""File in the state directory with the token of this user's agents. It lasts: agents keep it in their settings."""
MAX_TOKEN = 16_000
"""Characters of a token; the head of a request is bounded as well."""
_WANTED = "Send the header Authorization: Bearer TOKEN."


@dataclass(frozen=True)
class Sender:
    """Who sends a request. `client`, `issuer`: of an access token, to tell one person's programs apart."""

    person: Person
    client: str = ""
    issuer: str = ""


class Callers(Protocol):
    """One way to recognise who sends a request."""

    async def sender(self, request: Request) -> Sender | Unknown:
        """Who sends it, or what to answer. Raises Forbidden for somebody who may do nothing here."""


def callers(access: Access, settings: Settings) -> Callers:
    """The way that goes with how people log in to the page."""
    if isinstance(access, OidcAccess):
        return _OfIssuer(access, audience(access, settings))
    if isinstance(access, SecretLink):
        return _OfToken(access, settings)
    return _OfProxy(access)


def audience(access: Access, settings: Settings) -> str:
    """What an access token must be for: the address of /mcp, or what the issuer calls it (PLANS_WEB_MCP_AUDIENCE)."""
    return settings.web_mcp_audience or access.link(PATH)


def token(settings: Settings, *, new: bool = False) -> str:
    """The token of this user's agents. `new`: another one; the old one ends at once. Raises SettingError."""
    settings.make_state_dir()
    path = settings.state_dir / TOKEN_FILE
    if new:
        path.unlink(missing_ok=True)
    return secret(path, lambda: secrets.token_hex(32), "PLANS_STATE_DIR", "who its agents are")


class _OfToken:
    """The token of the state directory. It is read for each request, so that a new one counts at once."""

    def __init__(self, access: SecretLink, settings: Settings) -> None:
        self._access, self._settings = access, settings
        self._attempts = Attempts()

    async def sender(self, request: Request) -> Sender | Unknown:
        given = _bearer(request)
        if given is None:
            return Unknown(401, f"{_WANTED} The page /connect shows the token.")
        if not hmac.compare_digest(given.encode(errors="replace"), token(self._settings).encode()):
            if self._attempts.failed(request.client.host if request.client else ""):
                return Unknown(429, "Too many wrong tokens. Wait a minute.")
            return Unknown(401, "This is not the token of this page. The page /connect shows it.")
        return Sender(Person(self._access.user, frozenset({self._access.role})))


class _OfIssuer:
    """Access tokens of the issuer that people log in with (RFC 9068), for this server (RFC 8707)."""

    def __init__(self, access: OidcAccess, audience: str) -> None:
        self._access, self._audience = access, audience

    async def sender(self, request: Request) -> Sender | Unknown:
        given = _bearer(request)
        if given is None:
            return Unknown(401, _WANTED)
        try:
            claims = await self._access.provider.access_claims(given, self._audience)
            return Sender(self._access.person_of(claims), _client(claims), self._access.provider.issuer)
        except LoginFailed as error:
            return Unknown(503 if error.code == "LOGIN_UNAVAILABLE" else 401, error.message)


class _OfProxy:
    """The header of the proxy, which has asked who it is."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def sender(self, request: Request) -> Sender | Unknown:
        known = self._access.known(request)
        return Sender(known.person) if known else Unknown(401, self._access.unknown(request).sentence)


def _bearer(request: Request) -> str | None:
    """The token of a request (RFC 6750, 2.1); None if there is not exactly one."""
    given = request.headers.getlist("authorization")
    scheme, _, found = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    found = found.strip()
    return found if scheme.lower() == "bearer" and found and len(found) <= MAX_TOKEN else None


def _client(claims: Mapping[str, Any]) -> str:
    found = claims.get("client_id", claims.get("azp"))
    return found if isinstance(found, str) else ""
