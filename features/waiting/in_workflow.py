"""The messages that bring answers and events, in a run of a plan.

Both may come at any moment, also before the step that they are for waits. An update is refused with the reason, a
signal leaves it in the log; the question stays either way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from temporalio import workflow

from plansurvive.features.waiting import answers, events
from plansurvive.features.waiting.above import EventsAbove
from plansurvive.features.waiting.below import EventsBelow
from plansurvive.features.waiting.messages import (
    KEPT,
    PASSED,
    PASSED_BYTES,
    WANTED,
    AnswerQuestion,
    EventsPassed,
    EventsWanted,
    SendEvent,
)
from plansurvive.features.waiting.model import Event
from plansurvive.features.waiting.steps import WaitingSteps, child_plans
from plansurvive.plans.errors import Refused
from plansurvive.workflows.execution import Execution
from plansurvive.workflows.feature import InRun, signal, update
from plansurvive.workflows.in_steps import InSteps


class AnswersAndEvents(InRun):
    """Questions and events of one run of a plan. An agent has none: its calls are seen by nobody who could answer."""

    feature = "waiting"
    of_agents = False

    def __init__(self, execution: Execution) -> None:
        super().__init__(execution)
        self._below = EventsBelow(execution.run)
        self._above = EventsAbove(execution.run, lambda name: self._steps.waits_for(name) or self._below.wants(name))
        self._steps = WaitingSteps(execution, self._above.changed)

    def in_steps(self) -> Sequence[InSteps]:
        """Its steps ask and wait."""
        return (self._steps,)

    @signal("answer", AnswerQuestion, 'Answer a question: {"stepId": "...", "value": "...", "by": "..."}', signed=True)
    def answer_signal(self, message: AnswerQuestion) -> None:
        """The answer to a question, now or before the step asks. One that does not fit is refused (`INVALID_ANSWER`),
        and the question stays; the first that fits counts. `digest` refuses the answer when the question is another
        one.
        """
        answers.take(self.execution.schedule, message, workflow.now(), "signal")

    @update(
        "answer", AnswerQuestion,
        'Answer a question; returns the sentence about it: {"stepId": "...", "value": "..."}',
        signed=True, validator="may_answer",
    )  # fmt: skip
    def answer(self, message: AnswerQuestion) -> dict[str, Any]:
        """As the signal. Returns `{stepId, text}`."""
        taken = answers.take(self.execution.schedule, message, workflow.now(), "update")
        return {"stepId": message.step_id, "text": answers.sentence(message.step_id, taken)}

    def may_answer(self, message: AnswerQuestion) -> None:
        """Refuse what does not answer."""
        answers.check(self.execution.schedule, message)

    @signal("event", SendEvent, 'Tell that something has happened: {"name": "order.paid", "data": {}}', signed=True)
    def event_signal(self, message: SendEvent) -> None:
        """Something has happened: every step that waits for this name, and whose `match` holds for `data`, completes
        with `data`, also in child plans; the newest 200 events, or 256 KiB, are kept for steps that wait later.
        """
        self._arrived(events.receive(self.execution.run, message, workflow.now()))

    @update(
        "event", SendEvent,
        'Tell that something has happened: {"name": "order.paid", "data": {}}; returns for whom', signed=True,
    )  # fmt: skip
    def event(self, message: SendEvent) -> dict[str, Any]:
        """As the signal. Returns `{number, steps, text}`: the event's number, and the steps that receive it now; with
        `below`, the steps whose child plans it is passed on to, where steps wait for events of this name.
        """
        event = events.receive(self.execution.run, message, workflow.now())
        names, below = self._arrived(event)
        found = [f"received by {', '.join(names[:10])}"] if names else []
        found += [f"passed on to the {child_plans(below)}"] if below else []
        more = {"below": below[:1_000]} if below else {}
        text = f"event '{event.name}' {'; '.join(found) or KEPT}"
        return {"number": event.number, "steps": names[:1_000], **more, "text": text}

    @signal(
        WANTED, EventsWanted, "Sent by child plans: which events their steps wait for, and have received.", between=True
    )
    def events_wanted(self, message: EventsWanted) -> None:
        """Sent by the child plan of a step when one of its steps, or one below, begins to wait for events of a name, or
        waits no longer; when it ends, which events it has received. Counts only from the child plan that works on the
        step (`UNKNOWN_AGENT`).
        """
        for name in self._below.wanted(message):
            self._above.changed(name)
        self._above.tell()

    @signal(
        PASSED, EventsPassed, "Sent by the parent of a child plan: events for its steps.",
        max_bytes=PASSED_BYTES, between=True,
    )  # fmt: skip
    def events_passed(self, message: EventsPassed) -> None:
        """Sent by the plan to the child plan of a step: its events of the names that this asked for, as if they were
        sent here. Refused where events count only signed (`UNSIGNED`), and by a plan that a person started
        (`NOT_ASKED`).
        """
        if not self._above.is_there:
            is_signed = self.execution.run.facts.must_sign
            text = "only signed events count for this plan" if is_signed else "this plan asks no other one for events"
            raise Refused(text, "UNSIGNED" if is_signed else "NOT_ASKED")
        for passed in message.events:
            if (event := events.receive_passed(self.execution.run, passed, workflow.now())) is not None:
                self._arrived(event)

    def shown(self) -> None:
        """Ask the plan above for events that steps wait for now."""
        self._above.tell()

    async def resting(self) -> None:
        """Say what must be said before."""
        await self._above.said()
        await self._below.said()

    async def ended(self) -> None:
        """Tell the plan above which events have been received."""
        await self._above.ended()

    def _arrived(self, event: Event) -> tuple[list[str], list[str]]:
        """The steps that receive an event that is kept now, as far as known, and those to whose child plans it goes."""
        below = self._below.arrived(event)
        return self._steps.arrived(event, below), below


IN_RUN, WORKFLOWS = AnswersAndEvents, ()
