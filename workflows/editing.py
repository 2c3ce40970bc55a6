"""The updates `edit` and `regenerate`, and the query `file`: changing a plan while it is reviewed, runs or is paused.

An edit that cannot be applied is refused by the validator and leaves no trace in history; one that is accepted is
applied whole. Who edits an older version than there is, is refused and shown what has changed.
"""

from __future__ import annotations

from typing import Any

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from plans import review
    from plans.edits import MAX_BYTES, EditPlan, Regenerate
    from plans.errors import InvalidPlan, PlanError, Refused
    from plans.messages import read
    from plans.review import Revised, revise
    from plans.revisions import Revision, differences
    from plans.run import PlanStatus, Run
    from workflows import drafting
    from workflows.checking import facts_about
    from workflows.mailbox import Mailbox
    from workflows.request import refusal


class Editing(Mailbox):
    """What changes the plan itself."""

    _regenerating = False

    @workflow.update(
        description='Change the plan: {"expectVersion": 1, "edits": [{"op": "set", "stepId": "s1", "path": "args.x", '
        '"value": 1}], "by": "..."}; ops: set, add, remove, move, skip, unskip'
    )
    async def edit(self, *arguments: Any) -> dict[str, Any]:
        """Apply edits, all or none. Returns the new version and what became different."""
        execution = self._started()
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
            revise(run, read(EditPlan, arguments, max_bytes=MAX_BYTES), workflow.now())
        except PlanError as error:
            if run is None or not _needs_tools(run, error):
                raise refusal(error, run) from error

    @workflow.update(
        description='Have the LLM revise a plan in review: {"feedback": "...", "by": "..."}',
        unfinished_policy=workflow.HandlerUnfinishedPolicy.ABANDON,
    )
    async def regenerate(self, *arguments: Any) -> dict[str, Any]:
        """A new plan from the present one and the feedback. Returns the new version and the difference."""
        execution = self._started()
        run, self._regenerating = execution.run, True
        try:
            message = read(Regenerate, arguments)
            _check_review(run, message)
            version = run.plan.version
            plan = await drafting.redraft(run, message.feedback)
            _check_review(run, message.model_copy(update={"expect_version": version}))
        except PlanError as error:
            raise refusal(error, run) from error
        finally:
            self._regenerating = False
        plan = plan.model_copy(update={"version": version + 1})
        revised = Revised(plan, {}, [], {step.id for step in plan.steps}, [], _revision(run, plan, message))
        execution.revise(revised)
        run.draft = ""
        return _answer(revised)

    @regenerate.validator
    def _may_regenerate(self, *arguments: Any) -> None:
        run: Run | None = None
        try:
            run = self._started().run
            _check_review(run, read(Regenerate, arguments))
            if self._regenerating:
                raise Refused("the plan is being regenerated already; wait for it", "BUSY")
        except PlanError as error:
            raise refusal(error, run) from error

    @workflow.query(description="The plan as a plan file, without what happened to it.")
    def file(self, *_: Any) -> dict[str, Any]:
        """The plan as it would be written by its author."""
        plan = self._started().run.plan
        steps = [step.model_dump(mode="json", exclude_none=True, exclude_defaults=True) for step in plan.steps]
        head = plan.model_dump(mode="json", exclude={"steps", "id"}, exclude_none=True, exclude_defaults=True)
        return {**head, "steps": steps}

    @workflow.query(description="The tools the plan's workers told it about, by name.")
    def tools(self, *_: Any) -> dict[str, Any]:
        """Their descriptions: what a form for a step is made from."""
        return {name: spec.model_dump(mode="json") for name, spec in self._started().run.facts.tools.items()}

    async def _revised(self, message: EditPlan) -> Revised:
        """The edits applied; the workers are asked first about tools and queues the plan did not have before."""
        run = self._started().run
        try:
            return revise(run, message, workflow.now())
        except InvalidPlan as error:
            if not _needs_tools(run, error):
                raise
        facts = await facts_about(run, None, all_tools=True, first=False)
        tools = {**facts.tools, **run.facts.tools}
        run.facts = run.facts.model_copy(update={"tools": tools, "all_tools": True})
        return revise(run, message, workflow.now())


def _needs_tools(run: Run, error: PlanError) -> bool:
    """Whether the edits may be right, as far as is known of the worker's tools."""
    if run.facts.all_tools or not isinstance(error, InvalidPlan):
        return False
    return all(problem.code == "UNKNOWN_TOOL" for problem in error.problems)


def _check_review(run: Run, message: Regenerate) -> None:
    if run.status is not PlanStatus.REVIEW:
        raise Refused(f"the plan is {run.status}; only a plan in review can be regenerated", "NOT_IN_REVIEW")
    review.check_version(run, message.expect_version)


def _revision(run: Run, plan: Any, message: Regenerate) -> Revision:
    return Revision(
        version=plan.version,
        by=message.by or "llm",
        time=workflow.now(),
        reason=message.feedback[:2_000],
        ops=["regenerate"],
        diff=differences(run.plan, plan),
        before=run.plan if run.plan.steps else None,
    )


def _answer(revised: Revised) -> dict[str, Any]:
    return {"version": revised.plan.version, "diff": revised.revision.diff}
