"""People and roles: who makes a request, and what a handler needs them to be."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import IntEnum

from starlette.requests import Request
from starlette.responses import Response

from plans.errors import PlanError

Handler = Callable[[Request], Awaitable[Response]]


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


@dataclass(frozen=True)
class Person:
    """Who makes a request."""

    name: str
    """The author of decisions and edits in a plan's log."""
    roles: frozenset[Role]
    verified: bool = False
    """Whether somebody else vouches for the name; otherwise it is the user name of whoever serves the page."""

    def may(self, role: Role) -> bool:
        """Whether the person has this role or a higher one."""
        return any(own >= role for own in self.roles)


def person_of(request: Request) -> Person:
    """The person who makes the request; the guard has seen to it that there is one."""
    person: Person = request.state.person
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

        return checked

    return decorate
