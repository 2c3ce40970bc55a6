"""Who holds the lock on a workspace, and who waits for it, first come first served: the state of its keeper."""

from __future__ import annotations

from pydantic import Field

from plansurvive.features.locks.model import LockNews, LockRelease, LockRequest
from plansurvive.plans.model import Value
from plansurvive.plans.step_state import State

MOST = 2_000
"""Plans that may wait; others ask again later."""


class InLine(State):
    """One plan in the line; the first one holds the lock."""

    asked: LockRequest
    told: LockNews | None = None


class Telling(Value):
    """What a plan is to be told."""

    workflow_id: str
    news: LockNews


class LockBook(State):
    """The line of one workspace."""

    line: list[InLine] = Field(default_factory=list)

    @property
    def awaits_end(self) -> bool:
        """Whether plans wait for the holder to end."""
        return len(self.line) > 1

    @property
    def holder(self) -> LockRequest | None:
        """The plan that holds the lock."""
        return self.line[0].asked if self.line else None

    def ask(self, request: LockRequest) -> bool:
        """Put a plan at the end of the line. False if it is in it already, or the line is full.

        A plan that asks again is told again: it may not have heard. A plan that was reset asks with another token, and
        keeps its turn, else it would wait for the lock that it holds itself.
        """
        for place in self.line:
            if (place.asked.workflow_id, place.asked.run_id) == (request.workflow_id, request.run_id):
                place.asked, place.told = request, None
                return False
        if len(self.line) >= MOST:
            return False
        self.line.append(InLine(asked=request))
        return True

    def release(self, message: LockRelease) -> bool:
        """Take a plan out of the line. False if it is not in it, or does not know its token."""
        before = len(self.line)
        self.line = [each for each in self.line if not _is_of(each, message)]
        return len(self.line) < before

    def drop(self, request: LockRequest) -> None:
        """Take a plan out of the line that has ended."""
        self.line = [each for each in self.line if each.asked != request]

    def untold(self) -> list[Telling]:
        """What is to be told to whom, now."""
        found = list[Telling]()
        for number, place in enumerate(self.line):
            news = self._news(number, place)
            told = place.told
            if told is None or (told.held, told.holder) != (news.held, news.holder):
                found.append(Telling(workflow_id=place.asked.workflow_id, news=news))
        return found

    def tell(self, telling: Telling) -> None:
        """Note that a plan was told."""
        for place in self.line:
            if place.asked.token == telling.news.token:
                place.told = telling.news

    def _news(self, number: int, place: InLine) -> LockNews:
        holder = self.line[0].asked.workflow_id if number else ""
        return LockNews(token=place.asked.token, held=number == 0, holder=holder, ahead=number)


def _is_of(place: InLine, message: LockRelease) -> bool:
    return place.asked.workflow_id == message.workflow_id and place.asked.token == message.token
