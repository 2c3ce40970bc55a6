"""The secret link: whoever has it is the user who serves the page. The default, for one person on this machine.

The link leads to a session; its secret is not the session's. A new one is made at each start.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from plansurvive.client.access.access import Access, Known, Unknown, is_use
from plansurvive.client.access.browser import REFERRER, SAFE_METHODS, own_path
from plansurvive.client.access.people import Person, Role
from plansurvive.client.access.sessions import Sessions
from plansurvive.runtime.base.atomic_file import write_whole

KEY_FILE = "web.key"
"""File in the state directory with the secret of the page that started last."""
HOURS = 30 * 24
ENTER = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>Opening</title>'
    '<link rel="icon" href="data:,">'  # or browsers ask for /favicon.ico
    '<meta http-equiv="refresh" content="0;url={url}"><p><a href="{url}">Open the page</a></p></html>'
)
"""Sent with the cookie. The page loads itself anew without the secret in its address: a redirect would not send a
SameSite=Strict cookie if the link was opened from another site, such as a mail reader. It replaces its entry in the
browser's history (HTML, "shared declarative refresh steps")."""
FREE = 10
"""Wrong secrets of an address within WINDOW that are answered as what they are."""
WINDOW = 60.0
ADDRESSES = 10_000
"""Addresses that are remembered."""
_EACH_START = "each start of `plan web` makes a new secret"
_NO_SECRET = f"You are not logged in. Open the full link that `plan web` printed, with its secret; {_EACH_START}."
_ENDED = f"Your session has ended. Open the full link that `plan web` printed at its last start; {_EACH_START}."
_OTHER_SECRET = (
    "The secret of this link is not, or no longer, that of this page. Open the full link that `plan web` printed at its"
    f" last start; {_EACH_START}."
)


class SecretLink(Access):
    """Access with a secret link. `host`: HOST:PORT; `user`, `role`: who has the link, and what they may do."""

    same_site = "strict"

    def __init__(self, secret: str, host: str, user: str, url: str | None = None, role: Role = Role.OPERATOR) -> None:
        super().__init__(url or f"http://{host}", Sessions(HOURS * 3_600, HOURS * 3_600))
        self.secret, self.user, self.role = secret, user, role
        self.attempts = Attempts()

    def link(self, path: str = "/") -> str:
        """The URL to open, with the secret."""
        return f"{self.origin}{path}?key={self.secret}"

    def new_session(self) -> str:
        """The cookie of a new session."""
        return self.sessions.begin(self.user, verified=False)

    def entering(self, request: Request) -> Response | Unknown | None:
        """The page that takes the secret out of the address, with the cookie."""
        if "key" not in request.query_params or request.method not in SAFE_METHODS:
            return None
        if not hmac.compare_digest(request.query_params["key"].encode(errors="replace"), self.secret.encode()):
            if self.attempts.failed(request.client.host if request.client else ""):
                return Unknown(429, "Too many wrong links. Wait a minute.")
            return Unknown(403, _OTHER_SECRET)
        rest = urlencode([(name, value) for name, value in request.query_params.multi_items() if name != "key"])
        url = own_path(request.scope["raw_path"].decode("latin-1") + (f"?{rest}" if rest else ""))
        for char, escaped in (("&", "&amp;"), ('"', "%22"), ("<", "%3C"), (">", "%3E"), ("'", "%27")):
            url = url.replace(char, escaped)
        # This page's address is the one that others must not see, in `Referer` and `document.referrer` as well.
        response = HTMLResponse(ENTER.format(url=url), headers={REFERRER: "no-referrer"})
        return self.enter(response, self.new_session())

    def known(self, request: Request) -> Known | None:
        """The user, by the cookie of a session."""
        cookie = request.cookies.get(self.cookie, "")
        session = self.sessions.find(cookie, is_use=is_use(request))
        if session is None:
            return None
        return Known(Person(session.name, frozenset({self.role})), session.csrf, cookie)

    def unknown(self, request: Request) -> Unknown:
        """Ask for the link."""
        return Unknown(403, _ENDED if self.cookie in request.cookies else _NO_SECRET)


def fresh_secret(state_dir: Path) -> str:
    """The secret of a page that starts: a new one, also written to a private file for the commands of this user."""
    found = secrets.token_urlsafe(24)
    write_whole(state_dir / KEY_FILE, found.encode())
    return found


class Attempts:
    """Slows down guessing: after some wrong secrets of an address, its further wrong ones are answered with 429.

    The secret has 192 bits, so this saves work rather than secrets. The right one is always accepted: nobody can lock
    another person of the same address out.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failed: dict[str, tuple[float, int]] = {}

    def failed(self, address: str) -> bool:
        """Count a wrong secret; whether there were too many."""
        now = self._clock()
        began, count = self._failed.pop(address, (now, 0))
        if now - began >= WINDOW:
            began, count = now, 0
        while len(self._failed) >= ADDRESSES:
            del self._failed[next(iter(self._failed))]
        self._failed[address] = began, count + 1
        return count + 1 > FREE
