"""The signals and updates `answer` and `event` of a plan.

Both may come at any moment, also before the step that they are for waits. An update is refused with the reason, a
signal leaves it in the log; the question stays either way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from plansurvive.plans.errors import PlanError, Refused
from plansurvive.plans.execution.messages import read
from plansurvive.plans.run import ENDED, Run
from plansurvive.plans.waiting import answers
from plansurvive.plans.waiting.messages import AnswerQuestion, SendEvent
from plansurvive.workflows import signed
from plansurvive.workflows.edit_handlers import EditHandlers
from plansurvive.workflows.inputs import require_stored, step_of


class WaitingHandlers(EditHandlers):
    """Adds to EditHandlers the messages for steps that ask or wait."""

    @workflow.signal(name="answer", description='Answer a question: {"stepId": "...", "value": "...", "by": "..."}')
    def answer_signal(self, *arguments: Any) -> None:
        """The answer to a question, now or before the step asks. One that does not fit is refused (`INVALID_ANSWER`),
        and the question stays; the first that fits counts. `digest` refuses the answer when the question is another
        one.
        """

        def take() -> None:
            message = read(AnswerQuestion, arguments)
            signed.take(self._started().run, "answer", arguments)
            answers.take(self._started().schedule, message, workflow.now(), "signal")

        self._try("answer", step_of(arguments), arguments, take)

    @workflow.update(description='Answer a question; returns the sentence about it: {"stepId": "...", "value": "..."}')
    def answer(self, *arguments: Any) -> dict[str, Any]:
        """As the signal. Returns `{stepId, text}`."""
        require_stored(arguments)
        execution, message = self._started(), read(AnswerQuestion, arguments)
        signed.take(execution.run, "answer", arguments)
        taken = answers.take(execution.schedule, message, workflow.now(), "update")
        return {"stepId": message.step_id, "text": answers.sentence(message.step_id, taken)}

    @answer.validator
    def _may_answer(self, *arguments: Any) -> None:
        try:
            run = self._open_run()
            message = read(AnswerQuestion, arguments)
            signed.check(run, "answer", arguments)
            answers.check(self._started().schedule, message)
        except PlanError as error:
            raise ApplicationError(error.message, type=error.code, non_retryable=True) from error

    @workflow.signal(name="event", description='Tell that something has happened: {"name": "order.paid", "data": {}}')
    def event_signal(self, *arguments: Any) -> None:
        """Something has happened: every step that waits for this name, and whose `match` holds for `data`, completes
        with `data`; the newest 200 events, or 256 KiB, are kept for steps that wait later.
        """
        self._try("event", None, arguments, lambda: self._received(arguments))

    @workflow.update(
        description='Tell that something has happened: {"name": "order.paid", "data": {}}; returns for whom'
    )
    def event(self, *arguments: Any) -> dict[str, Any]:
        """As the signal. Returns `{number, steps, text}`: the event's number, and the steps that receive it now."""
        require_stored(arguments)
        return self._received(arguments)

    @event.validator
    def _may_event(self, *arguments: Any) -> None:
        try:
            run = self._open_run()
            read(SendEvent, arguments)
            signed.check(run, "event", arguments)
        except PlanError as error:
            raise ApplicationError(error.message, type=error.code, non_retryable=True) from error

    def _received(self, arguments: Sequence[Any]) -> dict[str, Any]:
        execution, message = self._started(), read(SendEvent, arguments)
        signed.take(execution.run, "event", arguments)
        event, names = execution.waiting.received(message)
        waits = f"received by {', '.join(names[:10])}" if names else "kept for steps that will wait for it"
        return {"number": event.number, "steps": names[:1_000], "text": f"event '{event.name}' {waits}"}

    def _open_run(self) -> Run:
        """The run, which has not ended. Raises Refused."""
        run = self._started().run
        if run.status in ENDED:
            raise Refused(f"the plan has ended ({run.status})", "PLAN_CLOSED")
        return run
