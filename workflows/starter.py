"""The seam `starts`: how the steps of a tool are run that no activity runs, such as a question or a child plan.

`plans.execution.next_action` decides that such a step begins (`Begin`), `Execution` asks the starter of its tool. A
starter is made by a feature (`InRun.starters`), lives as long as the `Execution`, and can be made again from the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, ClassVar

from plansurvive.plans.model import Step


class Starter:
    """Runs the steps of some tools. Override what it needs; these here do nothing."""

    tools: ClassVar[tuple[str, ...]] = ()
    """Names of the tools."""
    awaits: ClassVar[tuple[str, ...]] = ()
    """What its steps await (`StepState.awaiting`): it acts on their time limits."""

    def start(self, step: Step, args: Mapping[str, Any]) -> asyncio.Future[Any] | None:
        """Begin a ready step. Returns the future of what a tool's activity would return, for a step that is running.

        None: the step stays ready and awaits something, or it has been settled. Example: a question.
        """
        raise NotImplementedError

    @property
    def has_news(self) -> bool:
        """Whether something came for a step since the last turn. Asked often: it has to cost nothing."""
        return False

    def turn(self) -> None:
        """Once a turn, after the settling of what has finished and before anything starts."""

    def expired(self, step_id: str) -> None:
        """The time limit of a step that awaits one of `awaits` has passed."""

    def resume(self) -> None:
        """After continue-as-new: restart what was open in the run of the workflow before."""
