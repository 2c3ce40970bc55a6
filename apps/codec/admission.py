"""Whose requests the codec server answers: those with its secret, and those of people who may log in to the web page.

The Temporal UI passes on the access token of its own login ("Pass access token"): it counts if the issuer of the web
page made it for PLANS_CODEC_AUDIENCE, and the person has a role there. Behind a proxy that logs people in, its header
counts as on the web page. With neither secret nor login, everybody is answered who can reach the port.
"""

from __future__ import annotations

import asyncio
import hmac
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from plansurvive.client.errors import AppMissing
from plansurvive.plans.errors import PlanError
from plansurvive.runtime.base.extras import install_line
from plansurvive.runtime.settings import SettingError, Settings

if TYPE_CHECKING:
    from plansurvive.client.access.access import Access
    from plansurvive.client.access.login import OidcAccess

MAX_TOKEN = 16_384
AUDIENCE = "PLANS_CODEC_AUDIENCE"


class Login(Protocol):
    """A way to recognise people."""

    def admits(self, headers: Sequence[tuple[str, str]], address: str) -> bool:
        """Whether the sender of these headers, from this address, may see what plans hold."""


class Admission:
    """Who is answered. `secret`: what a request may know; `login`: how people may be recognised besides."""

    def __init__(self, secret: str = "", login: Login | None = None) -> None:
        self.secret, self.login = secret, login

    def admits(self, path: str, headers: Sequence[tuple[str, str]], address: str) -> bool:
        """Whether to answer a request. `path`: of its URL; `address`: where it came from."""
        if not self.secret and self.login is None:
            return True
        given = (path.strip("/").partition("/")[0], bearer(headers))
        if self.secret and any(hmac.compare_digest(each.encode(), self.secret.encode()) for each in given):
            return True
        return self.login is not None and self.login.admits(headers, address)


class ByToken:
    """Access tokens of the web page's issuer, for an audience of the codec server's own."""

    def __init__(self, access: OidcAccess, audience: str) -> None:
        self._access, self._audience = access, audience
        self._one = threading.Lock()  # the issuer's answers are kept by one object, and requests have threads

    def admits(self, headers: Sequence[tuple[str, str]], _address: str) -> bool:
        """Whether the token is good and its person has a role. Nothing is kept: roles may change."""
        token = bearer(headers)
        if not token or len(token) > MAX_TOKEN:
            return False
        try:
            with self._one:
                claims = asyncio.run(self._access.provider.access_claims(token, self._audience))
            self._access.person_of(claims)
        except PlanError:
            return False
        return True


class ByProxy:
    """The header of a proxy that logs people in."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def admits(self, headers: Sequence[tuple[str, str]], address: str) -> bool:
        """Whether the proxy names a person who has a role."""
        from starlette.requests import Request

        raw = [(name.lower().encode("latin-1"), value.encode("latin-1", "replace")) for name, value in headers]
        request = Request({"type": "http", "method": "POST", "path": "/", "headers": raw, "client": (address, 0)})
        try:
            return self._access.known(request) is not None
        except PlanError:
            return False


def login_of(settings: Settings, environ: Mapping[str, str]) -> Login | None:
    """How people are recognised, as the settings of the web page say; None if they name no login for the codec server.

    Raises SettingError.
    """
    if settings.web_login == "link" or (settings.web_login == "oidc" and settings.codec_audience is None):
        return None
    if problem := settings.web_problem():
        raise SettingError(problem)
    if settings.codec_audience and settings.codec_audience == settings.web_oidc_client_id:
        text = "this is the page's client id: ID tokens would count as access tokens; name another audience"
        raise SettingError({AUDIENCE: text})
    try:  # lazily: without a login, no library of the web page is needed
        from plansurvive.client.access.choose import access_for
        from plansurvive.client.access.login import OidcAccess
    except ModuleNotFoundError as error:
        text = f"logins need the library {error.name}; run: {install_line('plansurvive[web]')}"
        raise AppMissing(text) from None

    access = access_for(settings, environ, "", "127.0.0.1:0")
    if isinstance(access, OidcAccess):
        return ByToken(access, settings.codec_audience or "")
    return ByProxy(access)


def bearer(headers: Sequence[tuple[str, str]]) -> str:
    """The token of the Authorization header; empty without one, or with two."""
    found = [value for name, value in headers if name.lower() == "authorization"]
    return found[0].removeprefix("Bearer ").strip() if len(found) == 1 else ""
