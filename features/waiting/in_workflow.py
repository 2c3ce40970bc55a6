"""The messages that bring answers and events, in a run of a plan.

Both may come at any moment, also before the step that they are for waits. An update is refused with the reason, a
signal leaves it in the log; the question stays either way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from temporalio import workflow

from plansurvive.features.waiting import answers
from plansurvive.features.waiting.messages import KEPT, AnswerQuestion, SendEvent
from plansurvive.features.waiting.steps import WaitingSteps
from plansurvive.workflows.execution import Execution
from plansurvive.workflows.feature import InRun, signal, update
from plansurvive.workflows.in_steps import InSteps


class AnswersAndEvents(InRun):
    """Questions and events of one run of a plan. An agent has none: its calls are seen by nobody who could answer."""

    feature = "waiting"
    of_agents = False

    def __init__(self, execution: Execution) -> None:
        super().__init__(execution)
        self._steps = WaitingSteps(execution)

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
        with `data`; the newest 200 events, or 256 KiB, are kept for steps that wait later.
        """
        self._steps.received(message)

    @update(
        "event", SendEvent,
        'Tell that something has happened: {"name": "order.paid", "data": {}}; returns for whom', signed=True,
    )  # fmt: skip
    def event(self, message: SendEvent) -> dict[str, Any]:
        """As the signal. Returns `{number, steps, text}`: the event's number, and the steps that receive it now."""
        event, names = self._steps.received(message)
        waits = f"received by {', '.join(names[:10])}" if names else KEPT
        return {"number": event.number, "steps": names[:1_000], "text": f"event '{event.name}' {waits}"}


IN_RUN, WORKFLOWS = AnswersAndEvents, ()
