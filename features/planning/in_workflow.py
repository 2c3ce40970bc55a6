"""The LLM's part in one run of a plan: it writes the plan, revises it when a person asks, and recovers failed steps.

An agent recovers by itself: it sees what failed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from temporalio import workflow

from plansurvive.features.planning import drafting
from plansurvive.features.planning.messages import Regenerate
from plansurvive.features.planning.recovering import StepRecovery
from plansurvive.features.planning.regeneration import replaced
from plansurvive.plans.change_log import Revision
from plansurvive.plans.editing import edit_limits
from plansurvive.plans.editing.apply_edits import Revised
from plansurvive.plans.errors import PlanError, Refused
from plansurvive.plans.execution.revision import answer_to
from plansurvive.plans.log import LogKind
from plansurvive.plans.run import PlanStatus
from plansurvive.workflows import worker_facts
from plansurvive.workflows.execution import Execution
from plansurvive.workflows.feature import InRun, update
from plansurvive.workflows.in_steps import InSteps


class Planning(InRun):
    """What the LLM writes and changes of one plan."""

    feature = "planning"
    of_agents = False

    def __init__(self, execution: Execution) -> None:
        super().__init__(execution)
        self._regenerating = False

    def in_steps(self) -> Sequence[InSteps]:
        """Failed steps are recovered."""
        return (StepRecovery(self.execution),)

    def keeps_open(self) -> bool:
        """While the LLM revises the plan: it may add steps."""
        return self._regenerating

    async def write(self) -> bool:
        """Have the LLM write the plan, and put it into review."""
        execution, run = self.execution, self.execution.run
        drafted = await drafting.draft(execution.schedule)
        run.draft = drafted.text
        revision = Revision(version=run.plan.version, by="llm", time=workflow.now(), ops=["draft"])
        execution.schedule.review()
        execution.revise(Revised(drafted.plan, {}, [], set(), drafted.problems, revision))
        return True

    @update(
        "regenerate", Regenerate,
        'Have the LLM revise the steps that have not started: {"feedback": "...", "by": "..."}',
        signed=True, validator="may_regenerate",
    )  # fmt: skip
    async def regenerate(self, message: Regenerate) -> dict[str, Any]:
        """The LLM revises what has not started, and nothing starts until it is done; the plan returns to review, or, on
        failure, continues as it was.
        """
        execution, run = self.execution, self.execution.run
        if run.status is PlanStatus.DRAFT:  # its validator cannot judge it, and the update waits
            await workflow.wait_condition(lambda: run.status is not PlanStatus.DRAFT)
        self._check_free()  # again, as the validator: another regeneration may have started meanwhile
        self._regenerating = True
        paused = execution.schedule.pause(workflow.now(), "no step starts while the LLM revises the plan")
        try:
            revised = await self._redrafted(message)
        except PlanError as error:
            run.note(LogKind.LLM, f"the plan was not revised: {error.message}", workflow.now(), code=error.code)
            if paused:
                execution.schedule.unpause(workflow.now(), "the plan continues unchanged")
            raise
        finally:
            self._regenerating = False
        if run.status is not PlanStatus.REVIEW:
            execution.schedule.review()
        execution.revise(revised)
        run.draft = ""
        return answer_to(run, revised)

    def may_regenerate(self, message: Regenerate) -> None:
        """Refuse it for a plan that cannot be edited, or of another version, and while the LLM revises the plan."""
        if self.execution.run.status is not PlanStatus.DRAFT:
            self._check(message)
        self._check_free()

    def _check_free(self) -> None:
        if self._regenerating:
            raise Refused("the plan is already being regenerated; try again when that has finished", "BUSY")

    def _check(self, message: Regenerate) -> None:
        edit_limits.check_open(self.execution.run)
        edit_limits.check_version(self.execution.run, message.expect_version)

    async def _redrafted(self, message: Regenerate) -> Revised:
        """The plan as revised by the LLM. Raises Unanswered, or Refused if it was edited or ended meanwhile."""
        run = self.execution.run
        self._check(message)
        version = run.plan.version
        if not run.facts.all_tools:
            await worker_facts.require_tools(run)
        plan = await drafting.redraft(self.execution.schedule, message.feedback)
        self._check(message.model_copy(update={"expect_version": version}))
        return replaced(run, plan, message, workflow.now())


IN_RUN, WORKFLOWS = Planning, ()
