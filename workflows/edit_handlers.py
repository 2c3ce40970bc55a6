"""The updates `edit` and `regenerate`, and the queries `file` and `tools`: changing a plan while it is open.

The validator refuses an edit that cannot be applied, so that it leaves no trace in history; an accepted edit is applied
completely. An edit of an outdated version is refused with what has changed since.
While the plan is a draft, it cannot be validated, and updates wait. An update may arrive in the same workflow task as
the answer that completes the draft, and the SDK delivers the update first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from temporalio import workflow
from temporalio.exceptions import FailureError, is_cancelled_exception

from plansurvive.plans.editing import edit_limits
from plansurvive.plans.editing.edit_limits import newly_bound
from plansurvive.plans.edits import MAX_BYTES, EditPlan, Regenerate
from plansurvive.plans.errors import InvalidPlan, PlanError, Refused, UnknownQueue
from plansurvive.plans.execution.apply_edits import Revised, revise
from plansurvive.plans.execution.messages import read
from plansurvive.plans.execution.regeneration import replaced
from plansurvive.plans.execution.revision import warnings_of
from plansurvive.plans.log import LogKind
from plansurvive.plans.run import PlanStatus, Run
from plansurvive.plans.views import queries
from plansurvive.workflows import drafting, signed, worker_facts
from plansurvive.workflows.handlers import MessageHandlers
from plansurvive.workflows.inputs import refusal, require_stored


class EditHandlers(MessageHandlers):
    """Adds to MessageHandlers the messages that change or export the plan itself."""

    _regenerating = False
    _checked: tuple[EditPlan, int, Revised] | None = None
    """The edit that was found valid last, the Run's `seq` then, and its result: `edit` follows in the same task."""

    @workflow.update(
        description='Edit the plan, all edits or none: {"expectVersion": 1, "edits": [{"op": "set", "stepId": "s1", '
        '"path": "args.x", "value": 1}], "by": "..."}; ops: set, add, remove, move, skip, unskip',
        unfinished_policy=workflow.HandlerUnfinishedPolicy.ABANDON,
    )
    async def edit(self, *arguments: Any) -> dict[str, Any]:
        """Edits the plan; returns the new version and the diff. Operations: `set`, `add`, `remove`, `move`, `skip`,
        `unskip`; all or none. `stepId`, `after` and `before` may name a step inside a block (`resize.thumb`: all items
        that have not got to it) or an instance (`resize[cat.png].thumb`: that one alone): docs/plan-files.md.
        """
        require_stored(arguments)
        execution = self._started()
        await self._wait_until_drafted()
        try:
            message = read(EditPlan, arguments, max_bytes=MAX_BYTES)
            signed.take(execution.run, "edit", arguments)
            revised = await self._revised(message)
        except PlanError as error:
            raise refusal(error, execution.run) from error
        before = execution.run.plan
        execution.revise(revised)
        execution.schedule.rules.edited(execution.run, before)
        return _answer(execution.run, revised)

    @edit.validator
    def _may_edit(self, *arguments: Any) -> None:
        run: Run | None = None
        try:
            run = self._started().run
            message = read(EditPlan, arguments, max_bytes=MAX_BYTES)
            signed.check(run, "edit", arguments)
            if run.status is not PlanStatus.DRAFT:
                self._checked = message, run.seq, revise(run, message, workflow.now())
        except PlanError as error:
            if run is None or not _may_be_valid(run, error):  # else `edit` asks the workers
                raise refusal(error, run) from error

    @workflow.update(
        description='Have the LLM revise the steps that have not started: {"feedback": "...", "by": "..."}',
        unfinished_policy=workflow.HandlerUnfinishedPolicy.ABANDON,
    )
    async def regenerate(self, *arguments: Any) -> dict[str, Any]:
        """The LLM revises what has not started, and nothing starts meanwhile; the plan returns to review, or, on
        failure, continues as it was.
        """
        require_stored(arguments)
        execution = self._started()
        await self._wait_until_drafted()
        self._check_free()  # again, as the validator: another regeneration may have started meanwhile
        self._take_signed("regenerate", arguments)
        run, self._regenerating = execution.run, True
        paused = execution.schedule.pause(workflow.now(), "no step starts while the LLM revises the plan")
        try:
            revised = await self._redrafted(read(Regenerate, arguments))
        except PlanError as error:
            run.note(LogKind.LLM, f"the plan was not revised: {error.message}", workflow.now(), code=error.code)
            if paused:
                execution.schedule.unpause(workflow.now(), "the plan continues unchanged")
            raise refusal(error, run) from error
        finally:
            self._regenerating = False
        if run.status is not PlanStatus.REVIEW:
            execution.schedule.review()
        execution.revise(revised)
        run.draft = ""
        return _answer(run, revised)

    @regenerate.validator
    def _may_regenerate(self, *arguments: Any) -> None:
        run: Run | None = None
        try:
            run = self._started().run
            message = read(Regenerate, arguments)
            signed.check(run, "regenerate", arguments)
            if run.status is not PlanStatus.DRAFT:
                _check_regenerate(run, message)
        except PlanError as error:
            raise refusal(error, run) from error
        self._check_free()

    @workflow.query(description="The plan as a plan file, without statuses and results.")
    def file(self, *_: Any) -> dict[str, Any]:
        """The plan as a plan file."""
        return queries.file(self._started().run)

    @workflow.query(description="The tools the plan's workers offer, by name, with their argument schemas.")
    def tools(self, *_: Any) -> dict[str, Any]:
        """The tools of its workers, with their schemas."""
        return queries.tools(self._started().run)

    async def _wait_until_drafted(self) -> None:
        """Wait until the plan is written and validated, or has ended."""
        run = self._started().run
        if run.status is PlanStatus.DRAFT:
            await workflow.wait_condition(lambda: run.status is not PlanStatus.DRAFT)

    def _take_signed(self, kind: str, arguments: Sequence[Any]) -> None:
        run = self._started().run
        try:
            signed.take(run, kind, arguments)
        except PlanError as error:
            raise refusal(error, run) from error

    def _check_free(self) -> None:
        if self._regenerating:
            error = Refused("the plan is already being regenerated; try again when that has finished", "BUSY")
            raise refusal(error, self._started().run)

    async def _revised(self, message: EditPlan) -> Revised:
        """The plan with the edits applied. Tools and queues new to the plan are looked up on their workers first."""
        run = self._started().run
        judged: set[str] = set()
        while True:
            try:
                revised = self._take_checked(message) or revise(run, message, workflow.now())
            except UnknownQueue as error:
                await worker_facts.learn_queue(run, error.queue)
                continue
            except InvalidPlan as error:
                if not _may_be_valid(run, error):
                    raise
                await _learn_tools(run)
                continue
            unjudged = [queue for queue in newly_bound(run.plan, revised.plan) if queue not in judged]
            if not unjudged:
                return revised
            for queue in unjudged:
                await worker_facts.judge(run, revised.plan, queue)
            judged.update(unjudged)  # and once more: the run may have changed during the awaits

    def _take_checked(self, message: EditPlan) -> Revised | None:
        """What the validator found, once, if nothing has happened since. A replay has no validators."""
        checked, self._checked = self._checked, None
        now, seq = workflow.now(), self._started().run.seq
        if checked is None or checked[:2] != (message, seq) or checked[2].revision.time != now:
            return None
        return checked[2]

    @property
    def _under_revision(self) -> bool:
        """Whether a plan with nothing left to do must stay open, because a revision may add steps."""
        run = self._started().run
        return not run.stopped and (self._regenerating or run.status is PlanStatus.REVIEW)

    async def _redrafted(self, message: Regenerate) -> Revised:
        """The plan as revised by the LLM. Raises Unanswered, or Refused if it was edited or ended meanwhile."""
        run = self._started().run
        _check_regenerate(run, message)
        version = run.plan.version
        if not run.facts.all_tools:
            await _learn_tools(run)
        plan = await drafting.redraft(self._started().schedule, message.feedback)
        _check_regenerate(run, message.model_copy(update={"expect_version": version}))
        return replaced(run, plan, message, workflow.now())


async def _learn_tools(run: Run) -> None:
    """Fetch all tools of the plan's own workers. Raises Refused CHECK_FAILED after the last retry."""
    try:
        await worker_facts.learn_tools(run)
    except FailureError as error:  # a local activity's own failure, not wrapped in an ActivityError
        if is_cancelled_exception(error):
            raise
        raise Refused(
            f"the worker could not list its tools: {error.cause or error.message}"[:1_000], "CHECK_FAILED"
        ) from error


def _may_be_valid(run: Run, error: PlanError) -> bool:
    """Whether the edits may be valid after all, once the workers' tools and queues are known."""
    if isinstance(error, UnknownQueue):
        return True
    if run.facts.all_tools or not isinstance(error, InvalidPlan):
        return False
    return all(problem.code == "UNKNOWN_TOOL" for problem in error.problems)


def _check_regenerate(run: Run, message: Regenerate) -> None:
    edit_limits.check_open(run)
    edit_limits.check_version(run, message.expect_version)


def _answer(run: Run, revised: Revised) -> dict[str, Any]:
    answer = {"version": revised.plan.version, "diff": revised.revision.diff}
    warnings = warnings_of(run, revised)
    return {**answer, "warnings": warnings} if warnings else answer
