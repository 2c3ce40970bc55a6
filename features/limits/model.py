"""What workers and the limiter say to each other: an `Exchange` of many asks at once, and its `Reply`.

A worker gathers the asks of all its steps into one exchange, so that its own steps never wait for one another's
messages. All of an exchange is judged at one moment, that of the limiter.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from plansurvive.features.limits.rates import MAX_AMOUNT, MAX_WINDOW
from plansurvive.plans.model import Value

WORKFLOW = "LimitsWorkflow"
EXCHANGE = "exchange"
"""Name of the update."""
LISTED = "limits"
"""Name of the query."""
MAX_ASKS = 200
"""Of one exchange."""
LEASE = 30.0
"""Seconds that a call keeps its place among the concurrent ones without a word from its worker."""
RENEWAL = 10.0
"""Seconds between two such words."""
LIMIT_REACHED = "LIMIT_REACHED"
"""Type of the failure of an attempt that did not begin, as its limit is used up."""

Bucket = Annotated[str, StringConstraints(min_length=1, max_length=400)]
Id = Annotated[str, StringConstraints(min_length=1, max_length=64)]
Window = Annotated[tuple[int, int], Field(description="Amount and seconds.")]


def workflow_id(queue: str) -> str:
    """Id of the workflow that keeps the limits of a task queue."""
    return f"limits-{queue}"


class Claim(Value):
    """What a call wants of one bucket: the limit of a tool, or of one of its keys."""

    bucket: Bucket
    rates: list[tuple[Annotated[int, Field(ge=1, le=MAX_AMOUNT)], Annotated[int, Field(ge=1, le=MAX_WINDOW)]]] = Field(
        default_factory=list, max_length=5, description="Amount and seconds of each."
    )
    concurrency: int | None = Field(default=None, ge=1, le=1_000_000)
    cost: int = Field(default=1, ge=0, le=MAX_AMOUNT)


class Ask(Value):
    """One attempt that wants to begin."""

    id: Id = Field(description="Of this attempt.")
    call: Id = Field(description="The same for all attempts of a call.")
    what: str = Field(default="", max_length=400, description="The plan and the step, for lists.")
    claims: list[Claim] = Field(min_length=1, max_length=20)
    margin: float = Field(default=0.5, ge=0, le=60, description="Seconds within which it begins once admitted.")


class Ended(Value):
    """An attempt that was admitted and has ended, or did not begin."""

    id: Id
    at: int = Field(default=0, description="When it was admitted, according to the reply.")
    spent: dict[Bucket, tuple[int, int]] = Field(
        default_factory=dict, max_length=20, description="By bucket, the cost that was claimed, and the actual one."
    )
    margin: float = Field(default=0.5, ge=0, le=60)
    pause: float = Field(default=0.0, ge=0, le=86_400, description="Seconds that a server asked to be left alone.")
    of: list[Bucket] = Field(default_factory=list, max_length=20, description="The buckets of that server.")


class Exchange(Value):
    """What one worker has to say at one moment."""

    asks: list[Ask] = Field(default_factory=list, max_length=MAX_ASKS)
    ended: list[Ended] = Field(default_factory=list, max_length=10 * MAX_ASKS)
    alive: list[Id] = Field(default_factory=list, max_length=10_000, description="Attempts that still run.")
    left: list[Id] = Field(default_factory=list, max_length=10 * MAX_ASKS, description="Calls that wait no more.")


class Answer(Value):
    """Whether one attempt may begin."""

    admitted: bool
    at: int = Field(default=0, description="When, in milliseconds of the limiter's clock.")
    wait: float = Field(default=0.0, description="Seconds until it is worth asking again.")
    bucket: str = Field(default="", description="The limit that is used up.")
    ahead: int = Field(default=0, description="Calls that wait before it.")


class Reply(Value):
    """The answers, in the order of the asks."""

    answers: list[Answer] = Field(default_factory=list)


class LimitRow(Value):
    """One bucket, for lists."""

    bucket: str
    rates: list[str] = Field(default_factory=list)
    used: list[int] = Field(default_factory=list, description="By rate, what counts now.")
    concurrency: int | None = None
    running: int = 0
    waiting: int = 0
    next_in: float | None = Field(default=None, description="Seconds until the first that waits may begin.")
    paused: float | None = Field(default=None, description="Seconds that its server asked to be left alone.")
    first: list[str] = Field(default_factory=list, description="Plans and steps that wait first.")
