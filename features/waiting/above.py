"""The side of a child plan whose steps wait for events: the plan above passes on those that it is asked for, by name.

By signal, when a step begins to wait for a name that none waited for, and when none waits for it any more. Before it
ends, the child plan says which events its steps have received. Nothing here happens in a plan that a person started,
nor below one that a worker of 1.0.0 began: that says nothing of it in the child's options.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from plansurvive.features.waiting import events
from plansurvive.features.waiting.messages import WANTED, EventsWanted
from plansurvive.features.waiting.model import FromAbove, Waiting
from plansurvive.plans.run import ENDED, Run
from plansurvive.workflows.parent import has_parent

NAMES = 50
"""Names in one message."""


class EventsAbove:
    """What one Run's steps want of the events of the plan above."""

    def __init__(self, run: Run, waits_for: Callable[[str], bool]) -> None:
        """`waits_for`: whether a step, or one below, waits for events of a name now."""
        self._run, self._waits_for = run, waits_for
        self._told: dict[str, None] = {}
        """Names that the plan above was asked for, by this run of the workflow."""
        self._changed: dict[str, None] = {}
        """Names that a step has begun to wait for since, or waits for no longer."""
        self._sending: asyncio.Task[None] | None = None

    @property
    def is_there(self) -> bool:
        """Whether there is a plan above that passes events on."""
        run = self._run
        given = run.options.known_part(FromAbove)
        return given is not None and given.passes and has_parent(run) and not run.facts.must_sign

    def changed(self, name: str) -> None:
        """A step has begun to wait for events of this name, or waits no longer."""
        self._changed[name] = None

    def tell(self) -> None:
        """Ask for what steps wait for now, without waiting."""
        if not self._changed:
            return
        if self._run.status in ENDED or not self.is_there:
            self._changed = {}
        elif self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send())

    async def said(self) -> None:
        """Wait until the server has all that was to be said."""
        self.tell()
        if self._sending is not None:
            await asyncio.shield(self._sending)

    async def ended(self) -> None:
        """Say last of all which events have been received."""
        await self.said()
        if not self._run.part(Waiting).passed or not self.is_there:
            return
        if numbers := events.received_from_above(self._run):
            await asyncio.shield(asyncio.create_task(self._signal(received=numbers)))

    async def _send(self) -> None:
        passed = self._run.part(Waiting).passed
        while self._changed:
            wants: dict[str, int] = {}
            ends: list[str] = []
            for name in [*self._changed][:NAMES]:
                del self._changed[name]
                is_wanted = self._waits_for(name)
                if is_wanted and name not in self._told:
                    self._told[name], wants[name] = None, passed.get(name, 0)
                elif name in self._told and not is_wanted:
                    del self._told[name]
                    ends.append(name)
            if wants or ends:
                # A task of its own: the SDK swallows a cancellation that arrives while a signal is on its way.
                await asyncio.shield(asyncio.create_task(self._signal(wants=wants, ends=ends)))

    async def _signal(self, **said: Any) -> None:
        link = self._run.parent
        if link is None:
            return
        message = EventsWanted(step_id=link.step_id, child=self._run.plan.id or "", **said)
        handle = workflow.get_external_workflow_handle(f"plan-{link.plan_id}")
        with suppress(ApplicationError):  # the plan has already ended
            await handle.signal(WANTED, message.model_dump(mode="json", exclude_defaults=True))
