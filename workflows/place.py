"""Where the activities of one Run's steps go, and who hears when its files are moved.

The core's own place are the workers of the step's queue, all of which see the same files. A feature may put another one
in its place (`Execution.place`): one that can be lost, and whose files are then moved. Child plans share the place of
their plan, so `children` wants to hear before it is moved, and after.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from temporalio.exceptions import ActivityError
from temporalio.workflow import ActivityHandle

from plansurvive.plans.model import Step
from plansurvive.plans.run import Run
from plansurvive.workflows.policies import Policy

T = TypeVar("T")


@dataclass(frozen=True)
class Destination:
    """Where one activity goes."""

    queue: str | None
    """Task queue; None: the workflow's own."""
    patience: timedelta | None = None
    """How long it waits there for a worker, before the place looks whether it is lost; None: as long as it takes.

    Such a place also counts the workers that die in a call which must not be repeated.
    """


class Sharer:
    """Who shares the place of a run. Override what it does; these here do nothing."""

    async def move(self, token: str, move: Callable[[], Awaitable[bool]]) -> bool:  # noqa: ARG002
        """Move the files away from the place with this token, by calling `move` or by another way; see `Place.moved`.

        Example: a child plan has the plan above move them.
        """
        return await move()

    async def before_move(self, token: str) -> None:
        """The files are about to be moved. Example: children leave the place."""

    async def after_move(self, error: ActivityError | None) -> None:
        """The files have been moved, or could not be. Example: children are told where they are."""


class Place:
    """The workers of each step's queue."""

    def __init__(self, run: Run, sharer: Sharer | None = None) -> None:
        self.run, self.sharer = run, sharer or Sharer()
        self.session = ""
        """What the idempotency keys of its calls begin with; see `tool_call.session_of_workflow`."""

    def call(
        self,
        step: Step,
        policy: Policy,  # noqa: ARG002
        begin: Callable[[Destination], ActivityHandle[T]],
    ) -> asyncio.Future[T]:
        """Start an activity of a step, with `begin`, where its files are. The result raises as an activity does.

        A place that can be lost may begin it again, somewhere else.
        """
        return begin(Destination(self.run.queue_of(step)))

    async def moved(self, token: str, step_id: str) -> bool:  # noqa: ARG002
        """Move the files if no worker of the place with this token lives; whether they are elsewhere now.

        Raises ActivityError or ApplicationError if they cannot be moved.
        """
        return False
