"""Sessions of people who have logged in: kept in memory, so that a logout ends them and a restart ends all.

The cookie holds a random id and nothing else. An id is made at login and never taken from a request (session fixation,
OWASP Session Management). A session ends when it was not used for a while, after some hours in any case, and by logout.

Rejected: signed cookies, which a logout cannot take back.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

MOST = 10_000
"""Sessions at the same time; the one that was unused for longest makes room."""


@dataclass
class Session:
    """One login of one person. `groups`: as the login named them, for the rules of roles."""

    name: str
    groups: tuple[str, ...]
    verified: bool
    csrf: str
    began: float
    used: float


class Sessions:
    """All sessions of a page. `idle`, `longest`: seconds."""

    def __init__(self, idle: float, longest: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._idle, self._longest, self._clock = idle, longest, clock
        self._of_id: dict[str, Session] = {}

    def begin(self, name: str, groups: tuple[str, ...] = (), *, verified: bool) -> str:
        """A new session; returns its id, for the cookie."""
        now, id = self._clock(), secrets.token_urlsafe(32)
        if len(self._of_id) >= MOST:
            self._of_id = {each: session for each, session in self._of_id.items() if self._is_alive(session, now)}
        if len(self._of_id) >= MOST:
            del self._of_id[min(self._of_id, key=lambda each: self._of_id[each].used)]
        self._of_id[id] = Session(name, groups, verified, secrets.token_urlsafe(32), now, now)
        return id

    def find(self, id: str, *, is_use: bool) -> Session | None:
        """The session of an id; None if there is none any more. `is_use`: it counts as used now."""
        session, now = self._of_id.get(id), self._clock()
        if session is None:
            return None
        if not self._is_alive(session, now):
            self.end(id)
            return None
        if is_use:
            session.used = now
        return session

    def end(self, id: str) -> None:
        """End a session; harmless if there is none."""
        self._of_id.pop(id, None)

    def _is_alive(self, session: Session, now: float) -> bool:
        return now - session.used < self._idle and now - session.began < self._longest
