"""What is particular about the replay of a plan that an LLM wrote: it ends when the plan is written and reviewed.

What people said in the review is said again: their feedback, with which the plan is regenerated, and their edits.
"""

from __future__ import annotations

from itertools import count

from temporalio.bridge.proto.workflow_activation import DoUpdate, WorkflowActivationJob

from plansurvive.apps.evaluation.answers import Key, data_of, review_messages
from plansurvive.apps.evaluation.record import AGENT, PLAN, Done, Record
from plansurvive.apps.evaluation.stage import Stage, Written, not_recorded
from plansurvive.plans.model import Problem

TOLD = 20
"""Problems of a plan that are reported."""


def is_drafted(record: Record) -> bool:
    """Whether the record has how an LLM wrote the plan."""
    sent = data_of(record.arguments)
    return record.kind == PLAN and isinstance(sent, dict) and sent.get("request") is not None


class PlanPart:
    """Says again what people said in the review, and ends when nothing of it is left."""

    def __init__(self, record: Record) -> None:
        self._messages, self._numbers = review_messages(record), count(1)

    async def at_rest(self, stage: Stage) -> list[WorkflowActivationJob]:
        """The next message of the review. Raises Written if there is none, or the plan runs."""
        state = await stage.state()
        if state.get("status") != "review" or not self._messages:
            raise Written
        message, name = self._messages.pop(0), f"said-{next(self._numbers)}"
        update = DoUpdate(
            id=name, protocol_instance_id=name, name=message.name, input=message.arguments, run_validator=True
        )
        return [WorkflowActivationJob(do_update=update)]

    def missing(self, stage: Stage, key: Key) -> Done:
        """No tool is called before the plan is written."""
        return not_recorded(key, stage.now)

    def starts(self, stage: Stage, name: str) -> None:
        """Raise Written where a step begins: the plan is written then."""
        if name in (AGENT, PLAN) or stage.answers.is_tool(name):
            raise Written

    async def closes(self, stage: Stage) -> None:
        """Note the plan."""
        state = await stage.state()
        plan = state.get("plan")
        stage.played.plan = plan if isinstance(plan, dict) else None
        found = [Problem.model_validate(each) for each in state.get("problems") or []]
        stage.played.problems = [each.text for each in found[:TOLD]]
