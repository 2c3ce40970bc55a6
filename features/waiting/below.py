"""The child plans of one Run whose steps wait for events: what comes for them is passed on, each event once.

A child plan says by signal which names its steps, and those below it, begin to wait for and which no longer. It is sent
what is kept of these, and what comes from then on; which step it is for is decided there. To each child plan events
go one message after the other: the server may change the order of two that are on their way.

What is due is in memory alone, as continue-as-new waits for child plans to end.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from plansurvive.features.waiting import events
from plansurvive.features.waiting.messages import PASSED, EventsWanted
from plansurvive.features.waiting.model import Below, Event, Waiting
from plansurvive.plans.errors import Refused
from plansurvive.plans.log import LogKind
from plansurvive.plans.run import Run, Status

AT_ONCE = 60_000
"""Bytes of the events of one message, about; the largest event has a quarter of it."""
BESIDE = 1_000
"""Bytes of an event beside its data, about."""


class EventsBelow:
    """What the steps of one Run's child plans wait for."""

    def __init__(self, run: Run) -> None:
        self._run, self._kept = run, run.part(Waiting)
        self._listening: dict[str, None] = {}
        """Steps whose child plans wait for events."""
        self._due: dict[str, list[Event]] = {}
        """By child plan, the events to be passed on."""
        self._sending: dict[str, asyncio.Task[None]] = {}

    def wanted(self, message: EventsWanted) -> list[str]:
        """Take over what a child plan waits for, and has received. Returns the names for which that has changed.

        Raises Refused unless it is from the child plan of the step.
        """
        step_id, state = message.step_id, self._run.steps.get(message.step_id)
        child = state.child if state is not None else None
        if state is None or child is None or child.plan_id != message.child:
            raise Refused(f"plan '{message.child}' does not work on step '{step_id[:200]}'", "UNKNOWN_AGENT")
        if self._run.facts.must_sign:
            raise Refused("only signed events count for this plan, and a signature is for one plan", "UNSIGNED")
        events.note_received_below(self._run, step_id, message.received)
        if state.status is not Status.RUNNING:
            return []
        kept = {name: number for name, number in self._names(step_id).items() if name not in message.ends}
        kept |= {name: max(since, kept.get(name, 0)) for name, since in message.wants.items()}
        state.keep(Below(child=child.plan_id, names=kept) if kept else Below())
        self._listening[step_id] = None
        for name in message.wants:
            self._catch_up(step_id, name)
        return [*message.wants, *message.ends]

    def arrived(self, event: Event) -> list[str]:
        """Pass an event on to the child plans whose steps wait for its name; returns the steps that run these."""
        found = [step_id for step_id in list(self._listening) if event.name in self._names(step_id)]
        for step_id in found:
            self._pass(step_id, event)
        return found

    def wants(self, name: str) -> bool:
        """Whether a step below waits for events of this name."""
        return any(name in self._names(step_id) for step_id in list(self._listening))

    async def said(self) -> None:
        """Wait until the server has all that is passed on."""
        while self._sending:
            await workflow.wait([*self._sending.values()])

    def _names(self, step_id: str) -> dict[str, int]:
        """What the child plan that works on the step now waits for; a step without one is taken out."""
        state = self._run.steps.get(step_id)
        below = state.known_part(Below) if state is not None and state.status is Status.RUNNING else None
        if state is None or below is None or state.child is None or state.child.plan_id != below.child:
            self._listening.pop(step_id, None)
            return {}
        return below.names

    def _catch_up(self, step_id: str, name: str) -> None:
        """Pass on the kept events of a name that the child plan does not have."""
        since = self._names(step_id)[name]
        missed = [each for each in self._kept.events if each.name == name and each.number > since]
        missed = [each for each in missed if not events.has_received(self._run, step_id, each)]
        for event in missed:
            self._pass(step_id, event)
        if missed:
            what = f"event '{name}'" if len(missed) == 1 else f"{len(missed)} events '{name}'"
            text = f"{what} passed on to the child plan of step '{step_id}', which waits for it"
            self._run.note(LogKind.EVENT, text, workflow.now(), step_id, subject=name)

    def _pass(self, step_id: str, event: Event) -> None:
        below = self._run.steps[step_id].part(Below)
        below.names = {**below.names, event.name: event.number}
        self._due.setdefault(below.child, []).append(event)
        if below.child not in self._sending:
            self._sending[below.child] = asyncio.create_task(self._send(below.child))

    async def _send(self, child: str) -> None:
        """Send a child plan what is due, oldest first."""
        handle = workflow.get_external_workflow_handle(f"plan-{child}")
        with suppress(ApplicationError):  # it has already ended
            while due := self._due.get(child):
                number = _fitting(due)
                self._due[child] = due[number:]
                await handle.signal(PASSED, {"events": [events.to_pass(each) for each in due[:number]]})
        del self._sending[child], self._due[child]


def _fitting(due: list[Event]) -> int:
    """How many of the events go into one message: one at least."""
    size = number = 0
    for each in due[:100]:
        size += each.size + BESIDE
        if number and size > AT_ONCE:
            break
        number += 1
    return number
