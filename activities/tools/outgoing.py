"""What goes along with the requests and commands of an attempt, from features around it, such as the id of a trace.

A context variable: tasks and threads that the attempt starts inherit it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import NamedTuple


class Outgoing(NamedTuple):
    """Of one attempt."""

    headers: Mapping[str, str] = {}
    """Of HTTP requests."""
    variables: Mapping[str, str] = {}
    """Of the environment of commands."""


NOTHING = Outgoing()
OUTGOING: ContextVar[Outgoing] = ContextVar("plans-outgoing", default=NOTHING)
