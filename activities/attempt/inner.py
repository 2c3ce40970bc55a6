"""Who is told of the attempts that an activity makes itself, of calls that have no activity of their own.

A context variable: a feature that observes activities sets it around each, and whatever makes several calls in one
activity tells it of every attempt. Unset, nobody is told.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import Literal, Protocol

Told = Callable[[Literal["completed", "failed", "again"], str], None]
"""Told how the attempt ended, with the code of its error. `again`: another one follows, in another activity."""


class Inner(Protocol):
    """Observes one attempt while it runs. Not called at its end: it was not made after all."""

    def __call__(self, tool: str, call: str, step_id: str) -> AbstractContextManager[Told]:
        """`call`: the name that an activity of its own would have as id."""


_NOBODY = nullcontext[Told](lambda outcome, code: None)  # noqa: ARG005
INNER: ContextVar[Inner] = ContextVar("plans-inner-attempts", default=lambda tool, call, step_id: _NOBODY)  # noqa: ARG005
