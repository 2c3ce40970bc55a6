"""How a message's author is named in the log: with where they spoke, and whether a login vouches for the name."""

from __future__ import annotations

from typing import Protocol

from plansurvive.plans.run import Run
from plansurvive.plans.signature import PAGE, signer_of
from plansurvive.plans.step_state import named


class Spoken(Protocol):
    """A message of a person."""

    @property
    def by(self) -> str:
        """The name; empty if the message has none."""

    @property
    def via(self) -> str:
        """Where they spoke: web, link, mcp; empty: by command or program."""

    @property
    def verified(self) -> bool:
        """Whether the message says that a login vouches for the name."""


def is_verified(run: Run, message: Spoken) -> bool:
    """Whether the name counts as verified: without signatures, anybody who reaches the server could claim it.

    By the person's own key, or by a login that a page or the worker's own clients vouch for.
    """
    signer = signer_of(message)
    if signer and not signer.startswith(PAGE):
        return True
    return message.verified and (run.facts.must_sign or bool(signer))


def who_of(run: Run, message: Spoken) -> str:
    """The author: `ann@example.org (web, verified)`; empty without a name."""
    return named(message.by, message.via, verified=is_verified(run, message))
