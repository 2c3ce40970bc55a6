"""What the guard of the web page asks about /mcp: is this address ours, and who sends the request.

A request of nobody is answered as MCP's authorization has it: 401, with where to learn who gives tokens (RFC 6750, 3;
RFC 9728, 5.1).
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from plansurvive.apps.mcp.callers import PATH, Callers, audience
from plansurvive.client.access.access import Access, Unknown
from plansurvive.client.access.login import OidcAccess
from plansurvive.client.access.people import Forbidden
from plansurvive.runtime.settings import Settings

WELL_KNOWN = "/.well-known/oauth-protected-resource"
"""The metadata of the resource (RFC 9728, 3.1), for the page as a whole and with the path of the server added."""
ADDRESSES = frozenset((PATH, WELL_KNOWN, WELL_KNOWN + PATH))
STREAM_SECONDS = 900.0
"""Time after which an answer that is still being sent ends, with whoever may have lost their role meanwhile."""


class McpEntrance:
    """The entrance of the MCP server of one page."""

    stream_seconds = STREAM_SECONDS

    def __init__(self, access: Access, callers: Callers, settings: Settings) -> None:
        self._access, self._callers, self._settings = access, callers, settings

    def covers(self, path: str) -> bool:
        """Whether an address is the server's."""
        return path in ADDRESSES

    async def admit(self, request: Request) -> Response | None:
        """The answer to a request of nobody; None lets it through, with its person."""
        if request.url.path != PATH:
            return None
        try:
            found = await self._callers.sender(request)
        except Forbidden as error:
            return self._answer(403, "access_denied", error.message)
        if isinstance(found, Unknown):
            return self._answer(found.status, "invalid_token", found.sentence, "authorization" in request.headers)
        request.state.person, request.state.sender, request.state.csrf = found.person, found, ""
        return None

    def metadata(self) -> dict[str, Any] | None:
        """What the server says of itself as a protected resource (RFC 9728, 2); None without an issuer."""
        if not isinstance(self._access, OidcAccess):
            return None
        return {
            "resource": audience(self._access, self._settings),
            "authorization_servers": [self._access.provider.issuer],
            "scopes_supported": self._settings.web_oidc_scopes.split(),
            "bearer_methods_supported": ["header"],
            "resource_name": "Plans that survive",
        }

    def _answer(self, status: int, error: str, sentence: str, was_token: bool = True) -> Response:
        headers = {"WWW-Authenticate": self._challenge(error if was_token else "")} if status == 401 else {}
        return JSONResponse({"error": error, "error_description": sentence}, status, headers)

    def _challenge(self, error: str) -> str:
        """How to be let in: nothing of it is taken from the request."""
        parts = ['realm="plans"', f'error="{error}"' if error else ""]
        if isinstance(self._access, OidcAccess):
            parts += [f'resource_metadata="{self._access.origin}{WELL_KNOWN}{PATH}"']
            parts += [f'scope="{self._settings.web_oidc_scopes}"']
        return "Bearer " + ", ".join(each for each in parts if each)
