"""The updates `edit` and `regenerate`, and the query `file`: changing a plan while it is reviewed, runs or is paused.

An edit that cannot be applied is refused by the validator and leaves no trace in history; one that is accepted is
applied whole. Who edits an older version than there is, is refused and shown what has changed.
A plan that is still a draft cannot be judged: what comes then waits for it. An update may arrive together with the
answer that makes the draft a plan, and is handed to the workflow first.
"""

from __future__ import annotations

from typing import Any

from temporalio import workflow
from temporalio.exceptions import FailureError, is_cancelled_exception

from plans.edits import MAX_BYTES, EditPlan, Regenerate
from plans.errors import InvalidPlan, PlanError, Refused, UnknownQueue
from plans.execution import apply_edits
from plans.execution.apply_edits import Revised, newly_bound, revise
from plans.execution.messages import read
from plans.execution.regeneration import replaced
from plans.run import PlanStatus, Run
from plans.views import queries
from workflows import drafting, worker_facts
from workflows.handlers import MessageHandlers
from workflows.inputs import refusal


class EditHandlers(MessageHandlers):
    """What changes the plan itself."""

    _regenerating = False

    @workflow.update(
        description='Change the plan: {"expectVersion": 1, "edits": [{"op": "set", "stepId": "s1", "path": "args.x", '
        '"value": 1}], "by": "..."}; ops: set, add, remove, move, skip, unskip',
        unfinished_policy=workflow.HandlerUnfinishedPolicy.ABANDON,
    )
    async def edit(self, *arguments: Any) -> dict[str, Any]:
        """Apply edits, all or none. Returns the new version and what became different."""
        execution = self._started()
        await self._no_draft()
        try:
            message = read(EditPlan, arguments, max_bytes=MAX_BYTES)
            revised = await self._revised(message)
        except PlanError as error:
            raise refusal(error, execution.run) from error
        execution.revise(revised)
        return _answer(revised)

    @edit.validator
    def _may_edit(self, *arguments: Any) -> None:
        run: Run | None = None
        try:
            run = self._started().run
            message = read(EditPlan, arguments, max_bytes=MAX_BYTES)
            if run.status is not PlanStatus.DRAFT:
                revise(run, message, workflow.now())
        except PlanError as error:
            if run is None or not _may_be_right(run, error):
                raise refusal(error, run) from error

    @workflow.update(
        description='Have the LLM revise what has not begun: {"feedback": "...", "by": "..."}',
        unfinished_policy=workflow.HandlerUnfinishedPolicy.ABANDON,
    )
    async def regenerate(self, *arguments: Any) -> dict[str, Any]:
        """A new plan from the present one and the feedback. Returns the new version and the difference.

        A plan that runs is paused while the LLM is asked, and in review when it has answered.
        """
        execution = self._started()
        await self._no_draft()
        self._check_free()
        run, self._regenerating = execution.run, True
        paused = execution.schedule.pause(workflow.now(), "no step starts while the LLM revises the plan")
        try:
            revised = await self._redrafted(read(Regenerate, arguments))
        except PlanError as error:
            run.note("llm", f"the plan was not revised: {error.message}", workflow.now())
            if paused:
                execution.schedule.unpause(workflow.now(), "the plan goes on as it was")
            raise refusal(error, run) from error
        finally:
            self._regenerating = False
        if run.status is not PlanStatus.REVIEW:
            execution.schedule.review()
        execution.revise(revised)
        run.draft = ""
        return _answer(revised)

    @regenerate.validator
    def _may_regenerate(self, *arguments: Any) -> None:
        run: Run | None = None
        try:
            run = self._started().run
            message = read(Regenerate, arguments)
            if run.status is not PlanStatus.DRAFT:
                _check_regenerate(run, message)
        except PlanError as error:
            raise refusal(error, run) from error
        self._check_free()

    @workflow.query(description="The plan as a plan file, without what happened to it.")
    def file(self, *_: Any) -> dict[str, Any]:
        """The plan as it would be written by its author."""
        return queries.file(self._started().run)

    @workflow.query(description="The tools the plan's workers told it about, by name.")
    def tools(self, *_: Any) -> dict[str, Any]:
        """Their descriptions: what a form for a step is made from."""
        return queries.tools(self._started().run)

    async def _no_draft(self) -> None:
        """Wait until the plan is written and checked, or has ended."""
        run = self._started().run
        if run.status is PlanStatus.DRAFT:
            await workflow.wait_condition(lambda: run.status is not PlanStatus.DRAFT)

    def _check_free(self) -> None:
        if self._regenerating:
            error = Refused("the plan is being regenerated already; wait for it", "BUSY")
            raise refusal(error, self._started().run)

    async def _revised(self, message: EditPlan) -> Revised:
        """The edits applied; the workers are asked first about tools and queues the plan did not have before."""
        run = self._started().run
        judged: set[str] = set()
        while True:
            try:
                revised = revise(run, message, workflow.now())
            except UnknownQueue as error:
                await worker_facts.learn_queue(run, error.queue)
                continue
            except InvalidPlan as error:
                if not _may_be_right(run, error):
                    raise
                await _learn_tools(run)
                continue
            left = [queue for queue in newly_bound(run.plan, revised.plan) if queue not in judged]
            if not left:
                return revised
            for queue in left:
                await worker_facts.judge(run, revised.plan, queue)
            judged.update(left)

    @property
    def _under_revision(self) -> bool:
        """Whether a plan with nothing left to do is kept open: more may come."""
        run = self._started().run
        return not run.stopped and (self._regenerating or run.status is PlanStatus.REVIEW)

    async def _redrafted(self, message: Regenerate) -> Revised:
        """What the LLM makes of the plan, unless somebody else changed it meanwhile."""
        run = self._started().run
        _check_regenerate(run, message)
        version = run.plan.version
        if not run.facts.all_tools:
            await _learn_tools(run)
        plan = await drafting.redraft(run, message.feedback)
        _check_regenerate(run, message.model_copy(update={"expect_version": version}))
        return replaced(run, plan, message, workflow.now())


async def _learn_tools(run: Run) -> None:
    """Have the run know all tools of its own workers. Raises Refused when that failed for good."""
    try:
        await worker_facts.learn_tools(run)
    except FailureError as error:  # of a local activity its own failure, in no ActivityError
        if is_cancelled_exception(error):
            raise
        raise Refused(
            f"the worker could not tell its tools: {error.cause or error.message}"[:1_000], "CHECK_FAILED"
        ) from error


def _may_be_right(run: Run, error: PlanError) -> bool:
    """Whether the edits may be right, as far as is known of the workers."""
    if isinstance(error, UnknownQueue):
        return True
    if run.facts.all_tools or not isinstance(error, InvalidPlan):
        return False
    return all(problem.code == "UNKNOWN_TOOL" for problem in error.problems)


def _check_regenerate(run: Run, message: Regenerate) -> None:
    apply_edits.check_open(run)
    apply_edits.check_version(run, message.expect_version)


def _answer(revised: Revised) -> dict[str, Any]:
    return {"version": revised.plan.version, "diff": revised.revision.diff}
