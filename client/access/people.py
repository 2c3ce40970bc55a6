"""People and roles: who makes a request, and what a handler needs them to be.

Every handler of a request that may change something says so with `needs`, or with `public`; an application with one
that does not is not served (`unguarded`).
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Literal, TypedDict

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route

from plansurvive.plans.errors import PlanError
from plansurvive.plans.in_views import Viewer

Handler = Callable[[Request], Awaitable[Response]]
_NEEDS, _PUBLIC = "needs_role", "is_public"


class Role(IntEnum):
    """What a person may do; each role may do what those before it may."""

    VIEWER = 1
    """See plans."""
    APPROVER = 2
    """Decide: approve, deny, answer."""
    OPERATOR = 3
    """Everything else: start, edit, cancel, undo."""


class Forbidden(PlanError):
    """The person may not do this."""

    code = "FORBIDDEN"


class Author(TypedDict):
    """The author of a message to a plan, as the functions of `client.runs` take it."""

    by: str
    via: Literal["web"]
    verified: bool


class Starter(TypedDict):
    """The same for `Options`, with which plans are started."""

    by: str
    vouched: bool | None


@dataclass(frozen=True)
class Person:
    """Who makes a request."""

    name: str
    """The author of decisions and edits in a plan's log."""
    roles: frozenset[Role]
    verified: bool = False
    """Whether a login vouches for the name; otherwise it is the user name of whoever serves the page."""

    @property
    def author(self) -> Author:
        """Who speaks in a message to a plan."""
        return Author(by=self.name, via="web", verified=self.verified)

    @property
    def starter(self) -> Starter:
        """Who starts a plan, as its options say it."""
        return Starter(by=self.name, vouched=self.verified or None)

    @property
    def viewer(self) -> Viewer:
        """To whom a card is shown."""
        return Viewer(self.name, self.verified)

    def may(self, role: Role) -> bool:
        """Whether the person has this role or a higher one."""
        return any(own >= role for own in self.roles)


def person_of(request: Request) -> Person:
    """The person who makes the request. Raises Forbidden on a page that is open to everybody."""
    person: Person | None = getattr(request.state, "person", None)
    if person is None:
        raise Forbidden("This needs a login.")
    return person


def csrf_of(request: Request) -> str:
    """The token that forms of this session must carry; empty if there is no session."""
    return str(getattr(request.state, "csrf", ""))


def needs(role: Role) -> Callable[[Handler], Handler]:
    """Decorator for handlers: raises Forbidden unless the person has this role."""

    def decorate(handler: Handler) -> Handler:
        @functools.wraps(handler)
        async def checked(request: Request) -> Response:
            person = person_of(request)
            if not person.may(role):
                raise Forbidden(f"{person.name} may not do this: it needs the role {role.name.lower()}")
            return await handler(request)

        setattr(checked, _NEEDS, role)
        return checked

    return decorate


def public(handler: Handler) -> Handler:
    """Decorator for the few handlers that change something without a role: they decide by themselves who may."""
    setattr(handler, _PUBLIC, True)
    return handler


def role_needed(endpoint: Any) -> Role | None:
    """The role that a handler needs, as `needs` marked it; None for those that everybody with a login may use."""
    found: Role | None = getattr(endpoint, _NEEDS, None)
    return found


def unguarded(routes: Iterable[BaseRoute]) -> list[str]:
    """The routes that may change something and do not say who may: `POST /path`."""
    found = []
    for path, method, endpoint in _walked(routes, ""):
        is_marked = role_needed(endpoint) is not None or getattr(endpoint, _PUBLIC, False)
        if method not in ("GET", "HEAD") and not is_marked:
            found.append(f"{method} {path}")
    return found


def _walked(routes: Iterable[BaseRoute], prefix: str) -> Iterator[tuple[str, str, Any]]:
    for route in routes:
        if isinstance(route, Mount):
            yield from _walked(route.routes, prefix + route.path)
        elif isinstance(route, Route) and route.methods:
            yield from ((prefix + route.path, method, route.endpoint) for method in sorted(route.methods))
        else:  # a WebSocket, an application of its own: nothing is known of what it does
            yield prefix + str(getattr(route, "path", route)), "ANY", getattr(route, "endpoint", route)
