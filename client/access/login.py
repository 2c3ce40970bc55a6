"""Logging in with OpenID Connect, and the session that follows.

State, nonce and PKCE verifier of a login under way are in a signed cookie of the browser that began it: the answer of
the issuer counts in that browser only, and for ten minutes (login CSRF, RFC 9700 4.7). The session is another cookie,
made when the login is complete.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from itsdangerous import BadSignature, URLSafeTimedSerializer
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from plansurvive.client.access.access import Access, Known, Unknown, is_use
from plansurvive.client.access.browser import own_path
from plansurvive.client.access.people import Forbidden, Person
from plansurvive.client.access.provider import LoginFailed, Provider
from plansurvive.client.access.roles import RoleSource
from plansurvive.client.access.sessions import Sessions

MINUTES = 10
CALLBACK = "/login/callback"
MAX_NAME = 200
MAX_GROUPS = 1_000
MAX_NEXT = 1_000
"""Characters of the page to return to: it travels in a cookie, which has room for 4,096 bytes."""


class OidcAccess(Access):
    """Access with an issuer. `name`, `groups`: the claims that say who somebody is."""

    def __init__(
        self,
        url: str,
        provider: Provider,
        roles: RoleSource,
        sessions: Sessions,
        *,
        name: str,
        groups: str,
        scopes: str,
    ) -> None:
        super().__init__(url, sessions)
        self.provider, self._roles = provider, roles
        self._name, self._groups, self._scopes = name, groups, scopes
        self._signer = URLSafeTimedSerializer(secrets.token_bytes(32), "login")

    @property
    def _under_way(self) -> str:
        return self.cookie_named("plans_login")

    def known(self, request: Request) -> Known | None:
        """The person of the session, with the role that the rules give now."""
        cookie = request.cookies.get(self.cookie, "")
        session = self.sessions.find(cookie, is_use=is_use(request))
        if session is None:
            return None
        return Known(self._person(session.name, session.groups), session.csrf, cookie)

    def unknown(self, _request: Request) -> Unknown:
        """Send to the login."""
        return Unknown(401, "Your session has ended. Load the page again to log in.", to="/login")

    async def begin(self, request: Request) -> Response:
        """Send the browser to the issuer. Raises LoginFailed."""
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        given = {
            "response_type": "code",
            "client_id": self.provider.client_id,
            "redirect_uri": self.origin + CALLBACK,
            "scope": self._scopes,
            "state": state,
            "nonce": nonce,
            "code_challenge": _challenge(verifier),
            "code_challenge_method": "S256",
        }
        address = await self.provider.address("authorization_endpoint")
        if not address:
            raise LoginFailed("The issuer has no page to log in.", "LOGIN_UNAVAILABLE")
        back = own_path(request.query_params.get("next", "/"))
        kept = self._signer.dumps([state, nonce, verifier, back if len(back) <= MAX_NEXT else "/"])
        response = RedirectResponse(f"{address}{'&' if '?' in address else '?'}{urlencode(given)}", 303)
        # Lax whatever the session's is: the issuer sends the browser back from another site.
        response.set_cookie(
            self._under_way, _text(kept), max_age=MINUTES * 60, httponly=True, secure=self.is_secure, samesite="lax"
        )
        return response

    async def complete(self, request: Request) -> Response:
        """The answer of the issuer: a session, and back to where the login began. Raises LoginFailed, Forbidden."""
        query = request.query_params
        try:
            kept = self._signer.loads(request.cookies.get(self._under_way, ""), max_age=MINUTES * 60)
        except BadSignature as error:
            text = "This login was started in another browser, or more than ten minutes ago. Log in again."
            raise LoginFailed(text) from error
        state, nonce, verifier, back = kept
        if not hmac.compare_digest(query.get("state", "").encode(errors="replace"), state.encode()):
            raise LoginFailed("This is the answer to another login. Log in again.")
        if query.get("iss", self.provider.issuer) != self.provider.issuer:  # RFC 9207
            raise LoginFailed("This is the answer of another issuer. Log in again.")
        if "error" in query or not query.get("code"):
            raise LoginFailed(f"The issuer refused the login: {query.get('error', 'no code')[:100]}.")
        claims = await self.provider.claims(query["code"], self.origin + CALLBACK, verifier, nonce)
        name, groups = self.person_of(claims).name, self._groups_of(claims)
        self.sessions.end(request.cookies.get(self.cookie, ""))
        session = self.sessions.begin(name, groups, verified=True)
        response = self.enter(RedirectResponse(own_path(back), 303), session)
        response.delete_cookie(self._under_way, httponly=True, secure=self.is_secure, samesite="lax")
        return response

    def person_of(self, claims: Mapping[str, Any]) -> Person:
        """The person of a token that is good, with the role of now. Raises LoginFailed without a name, Forbidden."""
        return self._person(self._name_of(claims), self._groups_of(claims))

    def _person(self, name: str, groups: Sequence[str]) -> Person:
        role = self._roles.role(name, groups)
        if role is None:
            raise Forbidden(f"{name} is not allowed to use this page; its operator assigns roles with PLANS_WEB_ROLES.")
        return Person(name, frozenset({role}), verified=True)

    def _name_of(self, claims: Mapping[str, Any]) -> str:
        name = claims.get(self._name)
        if not isinstance(name, str) or not name.strip() or len(name) > MAX_NAME or not name.isprintable():
            text = f"The issuer's token has no usable claim {self._name!r}"
            raise LoginFailed(f"{text}; name another with PLANS_WEB_OIDC_NAME_CLAIM.")
        if self._name == "email" and claims.get("email_verified", True) not in (True, "true"):
            raise LoginFailed("The issuer has not verified this address.")
        return name

    def _groups_of(self, claims: Mapping[str, Any]) -> tuple[str, ...]:
        found = claims.get(self._groups, ())
        listed = [found] if isinstance(found, str) else found if isinstance(found, list) else []
        return tuple(each for each in listed[:MAX_GROUPS] if isinstance(each, str))


def _challenge(verifier: str) -> str:
    """The S256 challenge of a PKCE verifier (RFC 7636, 4.2)."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def _text(kept: str | bytes) -> str:
    return kept if isinstance(kept, str) else kept.decode()
