"""A workflow that keeps a line of plans, first come first served: for the lock on a workspace, or a place of a label.

It is as durable as the plans themselves: a worker or a server that is killed changes nothing. A plan that ends leaves
the line; whether one was terminated, which cannot, is asked while others wait. It ends when the line is empty.
`activities.lifecycle.keeper` is what activities ask of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, ClassVar, Literal, Protocol, TypeVar

from pydantic import ValidationError
from temporalio import workflow
from temporalio.common import RetryPolicy

from plansurvive.plans.model import Value

FIRST_LOOK, LONGEST = 2.0, 60.0
"""Seconds between two looks whether plans have ended; doubled each time, and begun again with each newcomer."""
RETRY = RetryPolicy(initial_interval=timedelta(seconds=1), maximum_interval=timedelta(seconds=30))
Message = TypeVar("Message", bound=Value)


class Book(Protocol):
    """The line as a value; continue-as-new keeps it."""

    @property
    def line(self) -> Sequence[object]:
        """The plans in it."""

    @property
    def awaits_end(self) -> bool:
        """Whether plans wait for others to end."""

    def model_dump(self, *, mode: Literal["json"]) -> dict[str, Any]:
        """As JSON data."""


class Keeper:
    """Base class: who extends it has the messages, and says what plans are told and asked."""

    looks_for: ClassVar[str]
    """Summary of the timer between two looks."""
    book: Book

    def __init__(self) -> None:
        self._pause, self._news = FIRST_LOOK, 0

    async def tell(self) -> None:
        """Tell plans what is new for them, until all know it."""
        raise NotImplementedError

    async def look(self) -> None:
        """Take plans out of the line that have ended without a word."""
        raise NotImplementedError

    async def keep(self) -> None:
        """Keep the line until it is empty."""
        while True:
            await self.tell()
            if not self.book.line:
                return
            if workflow.info().is_continue_as_new_suggested():
                await workflow.wait_condition(workflow.all_handlers_finished)
                workflow.continue_as_new(self.book.model_dump(mode="json"))
            await self._next()

    def changed(self, *, newcomer: bool = False) -> None:
        """A message was taken; `newcomer`: it put a plan into the line."""
        self._news += 1
        if newcomer:
            self._pause = FIRST_LOOK

    async def _next(self) -> None:
        """Wait for a message; while plans wait for others to end, look now and then."""
        news = self._news
        try:
            await workflow.wait_condition(
                lambda: self._news != news,
                timeout=self._pause if self.book.awaits_end else None,
                timeout_summary=self.looks_for,
            )
        except TimeoutError:
            self._pause = min(2 * self._pause, LONGEST)
            await self.look()


def state_of(arguments: Sequence[Any]) -> dict[str, Any]:
    """What a keeper was started with: the line that an earlier run of it kept, or nothing."""
    return arguments[0] if arguments and isinstance(arguments[0], dict) else {}


def message_of(kind: type[Message], arguments: Sequence[Any]) -> Message | None:
    """What a signal to a keeper says; None if it cannot be read, and is left out."""
    try:
        return kind.model_validate(arguments[0]) if len(arguments) == 1 else None
    except ValidationError:
        return None
