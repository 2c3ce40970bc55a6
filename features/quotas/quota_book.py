"""Who has a place of a label, and who waits, first come first served: the state of its keeper."""

from __future__ import annotations

from pydantic import Field

from plansurvive.features.quotas.model import QuotaRelease, QuotaRequest, QuotaRow
from plansurvive.plans.step_state import State

MOST = 2_000
"""Plans in the line; others ask again later."""


class InLine(State):
    """One plan in the line."""

    request: QuotaRequest
    held: bool = False
    told: bool = Field(default=False, description="That it has a place was sent to it.")


class QuotaBook(State):
    """The line of one label."""

    label: str = ""
    most: int = Field(default=1, description="As the last plan that asked knows it from its worker.")
    line: list[InLine] = Field(default_factory=list)

    def ask(self, request: QuotaRequest) -> bool:
        """Put a plan at the end of the line. False if it is in it already, or the line is full.

        A plan that asks again is told again: it may not have heard. A plan that was reset asks with another token, and
        keeps its turn, else it would wait for the place that it has itself.
        """
        self.label, self.most = request.label, request.most
        for each in self.line:
            if each.request.token == request.token or _is_reset(each.request, request):
                each.request, each.told = request, False
                return False
        if len(self.line) >= MOST:
            return False
        self.line.append(InLine(request=request))
        return True

    def release(self, message: QuotaRelease) -> bool:
        """Take a plan out of the line. False if it is not in it, or does not know its token."""
        before = len(self.line)
        self.line = [each for each in self.line if not _is_of(each, message)]
        return len(self.line) < before

    def drop(self, tokens: list[str]) -> None:
        """Take plans out of the line that have ended."""
        self.line = [each for each in self.line if each.request.token not in tokens]

    def grant(self) -> list[InLine]:
        """Give free places to the first that wait. Returns those that are to be told that they have one, now.

        A quota that was lowered takes no place away.
        """
        free = self.most - len(self.holders)
        for each in self.line:
            if free > 0 and not each.held:
                each.held, free = True, free - 1
        return [each for each in self.line if each.held and not each.told]

    @property
    def awaits_end(self) -> bool:
        """Whether plans wait for those that have a place to end."""
        return len(self.holders) < len(self.line)

    @property
    def holders(self) -> list[QuotaRequest]:
        """The plans that have a place."""
        return [each.request for each in self.line if each.held]

    @property
    def row(self) -> QuotaRow:
        """The line for lists."""
        waiting = [each.request.workflow_id for each in self.line if not each.held]
        running = [each.workflow_id for each in self.holders]
        return QuotaRow(label=self.label, most=self.most, running=running, waiting=waiting)


def _is_reset(one: QuotaRequest, other: QuotaRequest) -> bool:
    return (one.workflow_id, one.run_id) == (other.workflow_id, other.run_id)


def _is_of(each: InLine, message: QuotaRelease) -> bool:
    return each.request.workflow_id == message.workflow_id and each.request.token == message.token
