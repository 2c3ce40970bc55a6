"""Sessions by a secret link: whoever has the link is the user who serves the page.

The link leads to a cookie, a random session id signed with the secret; the CSRF token is another signature of it.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from pathlib import Path

from client.web.access.people import Person, Role
from runtime.atomic_file import write_whole

KEY_FILE = "web.key"


@dataclass(frozen=True)
class SecretLink:
    """The policy of the secret link."""

    secret: str
    host: str
    """What a browser sends as Host, with the port; every other host is refused."""
    user: str
    """Name of the person who has the link."""

    @property
    def origin(self) -> str:
        """The page's own origin."""
        return f"http://{self.host}"

    @property
    def cookie(self) -> str:
        """Name of the cookie. Cookies do not know ports: two pages on one machine must not overwrite each other's."""
        return f"plans_{self.host.rpartition(':')[2]}"

    def link(self, path: str = "/") -> str:
        """The URL to open, with the secret."""
        return f"{self.origin}{path}?key={self.secret}"

    def is_key(self, given: str) -> bool:
        """Whether a text is the secret."""
        return hmac.compare_digest(given.encode(), self.secret.encode())

    def new_session(self) -> str:
        """The cookie of a new session."""
        session = secrets.token_urlsafe(18)
        return f"{session}.{self._signed('session', session)}"

    def person(self, cookie: str) -> Person | None:
        """The person of a session; None if the cookie is not one of ours."""
        session, _, signature = cookie.rpartition(".")
        known = bool(session) and hmac.compare_digest(signature.encode(), self._signed("session", session).encode())
        return Person(self.user, frozenset({Role.OPERATOR})) if known else None

    def csrf(self, cookie: str) -> str:
        """The token for forms of a session."""
        return self._signed("form", cookie)

    def _signed(self, what: str, text: str) -> str:
        return hmac.new(self.secret.encode(), f"{what}:{text}".encode(), hashlib.sha256).hexdigest()


def kept_secret(state_dir: Path) -> str:
    """The secret of the pages served with this state directory, made once: an open page survives a restart."""
    file = state_dir / KEY_FILE
    try:
        found = file.read_text().strip()
    except OSError:
        found = ""
    if len(found) < 32:
        found = secrets.token_urlsafe(24)
        write_whole(file, found.encode())
    return found
