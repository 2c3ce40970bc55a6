"""What every way to log in has in common: the page's address, its cookie, and how a request becomes a person."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from plansurvive.client.access.people import Person
from plansurvive.client.access.sessions import Sessions

DECIDE = "/decide/"
"""Below it are one-time links, which need no login: the link itself says what it may."""
PUBLIC = ("/login", "/login/callback", "/logged-out")


@dataclass(frozen=True)
class Known:
    """Whose request it is."""

    person: Person
    csrf: str
    """The token that this person's forms carry."""
    session: str
    """Names the session in this process; not for anybody to see."""


@dataclass(frozen=True)
class Unknown:
    """What to answer to a request of nobody: a redirect to the login, or a status and a sentence."""

    status: int
    sentence: str
    to: str = ""


class Access(ABC):
    """A way to log in, for one page. `url`: its origin, as people open it."""

    same_site: Literal["lax", "strict"] = "lax"
    """Lax where links in messages should open pages, and where the login comes back from another site: everything that
    changes something is a POST with Origin and token checked as well."""

    body_seconds = 30.0
    """Time that a request has to send its body."""
    stream_seconds = 300.0
    """Time after which a page's stream of changes ends; browsers open it again, if their session still lives."""
    can_log_out = True
    """Whether the page can end a session by itself."""

    def __init__(self, url: str, sessions: Sessions) -> None:
        self.origin = url
        self.sessions = sessions
        self._key = secrets.token_bytes(32)

    @property
    def host(self) -> str:
        """What a browser sends as Host, with the port; every other host is refused."""
        return urlsplit(self.origin).netloc

    @property
    def is_secure(self) -> bool:
        """Whether people open the page by https."""
        return self.origin.startswith("https:")

    @property
    def cookie(self) -> str:
        """Name of the cookie. Cookies do not know ports: two pages on one machine must not overwrite each other's."""
        return self.cookie_named("plans")

    def cookie_named(self, name: str) -> str:
        """The name of a cookie of this page. Browsers take `__Host-` from this host only, by https (RFC 6265bis)."""
        return f"__Host-{name}" if self.is_secure else f"{name}_{urlsplit(self.origin).port or 80}"

    def link(self, path: str = "/") -> str:
        """The URL to open."""
        return self.origin + path

    @abstractmethod
    def known(self, request: Request) -> Known | None:
        """Whose request it is; None if that is not known. Raises Forbidden for somebody who may do nothing here."""

    @abstractmethod
    def unknown(self, request: Request) -> Unknown:
        """What to answer to a request of nobody."""

    def entering(self, _request: Request) -> Response | Unknown | None:
        """The answer to a request that logs in by itself; None for every other."""
        return None

    def csrf(self, cookie: str) -> str:
        """The token for forms of a session; empty if it has ended."""
        session = self.sessions.find(cookie, is_use=False)
        return session.csrf if session else ""

    def csrf_of_path(self, path: str) -> str:
        """The token of the forms of a page without a session, such as that of a one-time link."""
        return hmac.new(self._key, f"path:{path}".encode(errors="replace"), hashlib.sha256).hexdigest()

    def is_public(self, path: str) -> bool:
        """Whether a page needs no login."""
        return path.startswith(DECIDE) or path in PUBLIC

    def enter(self, response: Response, session: str) -> Response:
        """Give the cookie of a new session to a browser."""
        response.set_cookie(self.cookie, session, httponly=True, secure=self.is_secure, samesite=self.same_site)
        return response

    def leave(self, request: Request, response: Response) -> Response:
        """End the session of a request."""
        self.sessions.end(request.cookies.get(self.cookie, ""))
        response.delete_cookie(self.cookie, httponly=True, secure=self.is_secure, samesite=self.same_site)
        return response


def is_use(request: Request) -> bool:
    """Whether a person does something: what an open page asks for by itself does not keep its session alive."""
    return request.method == "POST" or request.headers.get("sec-fetch-mode", "navigate") == "navigate"
