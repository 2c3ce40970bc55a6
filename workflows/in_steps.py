"""What a feature does with the steps of one `Execution`: starts some, takes failures of others, acts on decisions.

`plans.execution.next_action` decides that a step begins whose tool no activity runs (`Begin`), and `Execution` asks
what has that tool. Made by a feature (`InRun.in_steps`); lives as long as the `Execution`, and can be made again
from the run. A seam that nobody fills is not asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, TypeVar

from plansurvive.plans.execution.messages import Control
from plansurvive.plans.execution.next_action import Call
from plansurvive.plans.model import Step
from plansurvive.plans.step_state import Outcome
from plansurvive.plans.usage import Permission

Made = TypeVar("Made")
Seam = TypeVar("Seam")


class InSteps:
    """The seams of `Execution`. Override those that it fills; these here do nothing."""

    tools: ClassVar[tuple[str, ...]] = ()
    """Names of the tools whose steps it starts."""
    awaits: ClassVar[tuple[str, ...]] = ()
    """What its steps await (`StepState.awaiting`): it acts on their time limits."""

    def start(self, step: Step, args: Mapping[str, Any]) -> asyncio.Future[Any] | None:
        """Begin a ready step. Returns the future of what a tool's activity would return, for a step that is running.

        None: the step stays ready and awaits something, or it has been settled. Example: a question.
        """
        raise NotImplementedError

    def postpones(self, step: Step, call: Call) -> bool:  # noqa: ARG002
        """Whether a ready step whose tool is to be called stays ready until a later turn. Example: `express` makes
        several calls in one activity.
        """
        return False

    @property
    def holds(self) -> bool:
        """Whether nothing of the run may change: no turn begins until `is_released`, and messages wait meanwhile."""
        return False

    @property
    def is_released(self) -> bool:
        """Whether the turn may begin in which `settle` ends what holds the run."""
        return True

    def settle(self) -> None:
        """First in a turn: settle what has held the run. Messages that have come meanwhile are handled after it."""

    async def finish(self) -> None:
        """The plan is about to be cancelled: end what holds the run soon, and settle it."""

    @property
    def has_news(self) -> bool:
        """Whether something came for a step since the last turn. Asked often: it has to cost nothing."""
        return False

    @property
    def in_flight(self) -> list[str]:
        """Steps that are not running, and for which something is under way that must not be cut off."""
        return []

    def turn(self) -> None:
        """Once a turn, after the settling of what has finished, and before decisions are applied."""

    def expired(self, step_id: str) -> None:
        """The time limit of a step that awaits one of `awaits` has passed."""

    def takes(self, step_id: str, outcome: Outcome) -> bool:  # noqa: ARG002
        """Whether it takes a step that is about to be settled, and settles it later. Example: the LLM recovers it."""
        return False

    def decided(self, step_id: str) -> bool:  # noqa: ARG002
        """Whether a person's decision is about something that it has asked about a step, and not about its call."""
        return False

    def exceeds(self, step_id: str, permission: Permission) -> None:
        """The child of a running step asks for an LLM request that only a person may permit: have one asked."""

    def before_start(self) -> None:
        """Once a turn, after decisions were applied, and before anything starts."""

    def interrupt(self, step_id: str) -> None:
        """The plan is interrupted: have what works on a running step stop at its next safe point."""

    def pause(self, action: Literal["pause", "unpause"], message: Control) -> None:
        """The plan is paused, or no longer: so is what works on its steps."""

    def resume(self) -> None:
        """After continue-as-new: restart what was open in the run of the workflow before."""

    async def cancel(self) -> None:
        """The plan is cancelled: end what is under way for steps that are not running."""


class AllInSteps:
    """All of them, each asked at the seams that it fills."""

    def __init__(self, made: Sequence[InSteps] = ()) -> None:
        self._of_tool = {name: each for each in made for name in each.tools}
        self._of_awaited: dict[str | None, InSteps] = {name: each for each in made for name in each.awaits}
        self._news = [each for each in made if type(each).has_news is not InSteps.has_news]
        self._flying = [each for each in made if type(each).in_flight is not InSteps.in_flight]
        self._turn = filled(made, InSteps.turn, lambda each: each.turn)
        self._postpones = filled(made, InSteps.postpones, lambda each: each.postpones)
        self._holding = [each for each in made if type(each).holds is not InSteps.holds]
        self._settle = filled(made, InSteps.settle, lambda each: each.settle)
        self._finish = filled(made, InSteps.finish, lambda each: each.finish)
        self._takes = filled(made, InSteps.takes, lambda each: each.takes)
        self._decided = filled(made, InSteps.decided, lambda each: each.decided)
        self._exceeds = filled(made, InSteps.exceeds, lambda each: each.exceeds)
        self._before_start = filled(made, InSteps.before_start, lambda each: each.before_start)
        self._interrupt = filled(made, InSteps.interrupt, lambda each: each.interrupt)
        self._pause = filled(made, InSteps.pause, lambda each: each.pause)
        self._resume = filled(made, InSteps.resume, lambda each: each.resume)
        self._cancel = filled(made, InSteps.cancel, lambda each: each.cancel)

    def of_tool(self, name: str) -> InSteps | None:
        """What starts the steps of a tool."""
        return self._of_tool.get(name)

    def of_awaited(self, awaiting: str | None) -> InSteps | None:
        """What acts on the time limit of a step that awaits this; None: the core does."""
        return self._of_awaited.get(awaiting)

    def postpones(self, step: Step, call: Call) -> bool:
        """See `InSteps.postpones`."""
        for seam in self._postpones:  # noqa: SIM110 - a generator, here and below, would double what asking costs
            if seam(step, call):
                return True
        return False

    @property
    def holds(self) -> bool:
        """See `InSteps.holds`."""
        for each in self._holding:  # noqa: SIM110
            if each.holds:
                return True
        return False

    @property
    def is_released(self) -> bool:
        """See `InSteps.is_released`."""
        return all(each.is_released for each in self._holding if each.holds)

    def settle(self) -> None:
        """See `InSteps.settle`."""
        for seam in self._settle:
            seam()

    async def finish(self) -> None:
        """See `InSteps.finish`."""
        for seam in self._finish:
            await seam()

    @property
    def has_news(self) -> bool:
        """See `InSteps.has_news`."""
        for each in self._news:  # noqa: SIM110
            if each.has_news:
                return True
        return False

    @property
    def in_flight(self) -> list[str]:
        """See `InSteps.in_flight`."""
        return [name for each in self._flying for name in each.in_flight]

    def turn(self) -> None:
        """See `InSteps.turn`."""
        for seam in self._turn:
            seam()

    def takes(self, step_id: str, outcome: Outcome) -> bool:
        """See `InSteps.takes`. The first that does is the last that is asked."""
        for seam in self._takes:  # noqa: SIM110
            if seam(step_id, outcome):
                return True
        return False

    def decided(self, step_id: str) -> bool:
        """See `InSteps.decided`. The first that it is about is the last that is asked."""
        return any(seam(step_id) for seam in self._decided)

    def exceeds(self, step_id: str, permission: Permission) -> None:
        """See `InSteps.exceeds`."""
        for seam in self._exceeds:
            seam(step_id, permission)

    def before_start(self) -> None:
        """See `InSteps.before_start`."""
        for seam in self._before_start:
            seam()

    def interrupt(self, step_id: str) -> None:
        """See `InSteps.interrupt`."""
        for seam in self._interrupt:
            seam(step_id)

    def pause(self, action: Literal["pause", "unpause"], message: Control) -> None:
        """See `InSteps.pause`."""
        for seam in self._pause:
            seam(action, message)

    def resume(self) -> None:
        """See `InSteps.resume`."""
        for seam in self._resume:
            seam()

    async def cancel(self) -> None:
        """See `InSteps.cancel`."""
        for seam in self._cancel:
            await seam()


def filled(made: Sequence[Made], unfilled: object, of: Callable[[Made], Seam]) -> list[Seam]:
    """The seams that are filled: those that are not the base class's own."""
    seams = [of(each) for each in made]
    return [seam for seam in seams if getattr(seam, "__func__", None) is not unfilled]
