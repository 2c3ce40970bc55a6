"""PlanWorkflow: one plan from draft to summary. The story of `run` is draft, review, execute, summarize.

Messages may come at any moment, also before the plan is checked: each is read by `plans.messages`, decided by
`plans.approvals`, and a bad one becomes a line in the run's log. Nothing that arrives can wedge a run. Facts about the
world come from the activity `check_plan` alone. When the history is full, the Run goes on in a new run of the workflow.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from temporalio import workflow
from temporalio.common import RawValue, SearchAttributeKey, SearchAttributeUpdate
from temporalio.exceptions import ActivityError, ApplicationError, ApplicationErrorCategory

with workflow.unsafe.imports_passed_through():
    from pydantic import ValidationError

    from plans import approvals, render, views
    from plans.calls import CheckRequest, Facts, SummaryFile
    from plans.errors import InvalidPlan, PlanError, Refused
    from plans.messages import Approve, Control, Decide, Deny, Since, read
    from plans.model import Problem
    from plans.reading import read_plan
    from plans.run import ENDED, PlanStatus, Run
    from plans.turnover import Move, Turnover
    from plans.validate import errors, input_values
    from workflows import policies
    from workflows.execution import Execution
    from workflows.request import PlanRequest, invalid, read_request, step_of

PLAN_STATUS = SearchAttributeKey.for_keyword("PlanStatus")
PLAN_PENDING = SearchAttributeKey.for_keyword_list("PlanPending")
PLAN_TITLE = SearchAttributeKey.for_text("PlanTitle")


@workflow.defn(name="PlanWorkflow", failure_exception_types=[PlanError, ValidationError])
class PlanWorkflow:
    """Runs one plan. Its id is `plan-<planId>`; its result is the summary."""

    @workflow.init
    def __init__(self, *arguments: Any) -> None:
        self._invalid: list[Problem] = []
        self._published: tuple[Any, ...] = ()
        self._execution: Execution | None = None
        self._patience: asyncio.Task[None] | None = None
        try:
            self._open(read_request(arguments))
        except InvalidPlan as error:
            self._invalid = error.problems

    @workflow.run
    async def run(self, *_: Any) -> dict[str, Any]:
        """Draft, review, execute, summarize. Returns the summary; a failed plan fails the workflow with it."""
        if self._invalid:
            raise invalid(self._invalid)
        execution = self._started()
        try:
            if execution.run.status is PlanStatus.DRAFT:
                await self._check()
            if execution.run.status is PlanStatus.REVIEW:
                await self._review()
            await self._execute()
        except asyncio.CancelledError:
            await execution.cancel()
            await self._summarize(cancelled=True)
            raise
        return await self._summarize()

    def _open(self, request: PlanRequest) -> None:
        if request.run is not None:
            self._execution = Execution(request.run)
            return
        plan = read_plan(request.plan)
        if isinstance(plan, list):
            raise InvalidPlan(plan)
        plan = plan.model_copy(update={"id": plan.id or workflow.info().workflow_id.removeprefix("plan-")})
        self._execution = Execution(Run.of(plan, request.options, Facts(), {}))

    async def _check(self) -> None:
        """Have the worker judge the plan and tell what the workflow must know about it."""
        run = self._started().run
        request = CheckRequest(plan=run.plan, workspace=run.options.workspace, inputs=run.options.inputs)
        facts = await workflow.execute_activity(
            "check_plan",
            request,
            result_type=Facts,
            activity_id="check_plan",
            summary=f"check {len(run.plan.steps)} steps against the worker's tools",
            start_to_close_timeout=policies.CHECK.start_to_close,
            retry_policy=policies.CHECK.retry_policy,
        )
        if errors(facts.problems):
            raise invalid(facts.problems)
        run.facts, run.inputs = facts, input_values(run.plan, run.options.inputs)[0]
        if run.options.review:
            self._started().schedule.review()
        else:
            self._started().schedule.begin(workflow.now())

    async def _review(self) -> None:
        """Wait until a person begins the plan."""
        execution = self._started()
        self._publish()
        await workflow.wait_condition(lambda: execution.run.status is not PlanStatus.REVIEW)

    async def _execute(self) -> None:
        """Turn after turn until nothing runs and nothing can start."""
        execution = self._started()
        execution.resume_timers()
        turnover = Turnover(execution.run.options.history_limit)
        while True:
            move = self._next_move(turnover)
            execution.turn(starting=move is Move.START)
            self._publish()
            if execution.schedule.idle:
                return
            if move is not Move.START and not execution.flying:
                await self._continue_as_new()
            await self._news(turnover.until)

    def _next_move(self, turnover: Turnover) -> Move:
        info, flying = workflow.info(), self._started().flying
        events, size = info.get_current_history_length(), info.get_current_history_size()
        return turnover.decide(events, size, info.is_continue_as_new_suggested(), flying, workflow.now())

    async def _news(self, until: datetime | None) -> None:
        """Wait until something happens, or the time that holding back is to end."""
        execution = self._started()
        if until is not None and self._patience is None:
            seconds = max(0.0, (until - workflow.now()).total_seconds())
            self._patience = asyncio.create_task(workflow.sleep(seconds, summary="wait for running steps"))
        patience = self._patience
        await workflow.wait_condition(lambda: execution.has_news or (patience is not None and patience.done()))
        if patience is not None and patience.done():
            self._patience = None

    async def _continue_as_new(self) -> None:
        """Go on in a new run of the workflow, with the Run and nothing else."""
        await workflow.wait_condition(workflow.all_handlers_finished)
        workflow.continue_as_new(PlanRequest(run=self._started().run))

    async def _summarize(self, cancelled: bool = False) -> dict[str, Any]:
        execution = self._started()
        execution.schedule.end(workflow.now(), cancelled)
        summary = render.summary_of(self._view())
        await self._keep_summary(summary)
        self._publish()
        if execution.run.status is PlanStatus.FAILED:
            text = f"the plan failed: {execution.run.stopped}"
            raise ApplicationError(text, summary, type="PLAN_FAILED", category=ApplicationErrorCategory.BENIGN)
        return summary

    async def _keep_summary(self, summary: dict[str, Any]) -> None:
        run = self._started().run
        if not run.facts.keeps_summaries:
            return
        file = SummaryFile(plan_id=run.plan.id or "", markdown=render.summary_markdown(summary, self._view()))
        try:
            await workflow.execute_activity(
                "write_summary",
                file,
                activity_id="write_summary",
                summary="keep SUMMARY.md",
                start_to_close_timeout=policies.SUMMARY.start_to_close,
                retry_policy=policies.SUMMARY.retry_policy,
            )
        except ActivityError as error:
            run.note("warning", f"SUMMARY.md could not be written: {error.cause}", workflow.now())

    def _publish(self) -> None:
        """Show the state in Temporal's own UI: current details always, search attributes when one has changed."""
        execution = self._started()
        run = execution.run
        workflow.set_current_details(render.details(run, execution.schedule))
        shown = (run.status.value, list(execution.schedule.asking)[:100])
        if not run.facts.search_attributes or shown == self._published:
            return
        first = not self._published
        self._published = shown
        updates: list[SearchAttributeUpdate[Any]] = [PLAN_STATUS.value_set(shown[0]), PLAN_PENDING.value_set(shown[1])]
        if first and run.plan.title:
            updates.append(PLAN_TITLE.value_set(run.plan.title))
        workflow.upsert_search_attributes(updates)

    def _started(self) -> Execution:
        if self._execution is None:
            raise invalid(self._invalid)
        return self._execution

    def _view(self) -> dict[str, Any]:
        return views.plan_view(self._started().run, self._started().schedule)

    def _try(self, what: str, step_id: str | None, act: Callable[[], Any]) -> None:
        """Do what a signal asks for; a refusal becomes a line in the log."""
        if self._execution is None:
            return
        run = self._execution.run
        try:
            if run.status in ENDED:
                raise Refused(f"the plan has ended ({run.status})", "PLAN_CLOSED")
            act()
        except Refused as refusal:
            known = step_id if step_id in run.steps else None
            run.note("refused", f"REFUSED:{refusal.code} {what}: {refusal.message}", workflow.now(), known)

    @workflow.signal(
        description='Let a waiting step start: {"stepId": "...", "by": "...", "comment": "...", "args": {}}'
    )
    def approve(self, *arguments: Any) -> None:
        """A person lets a step start. Counts also before the step waits."""
        self._try("approve", step_of(arguments), lambda: self._signal_decision(read(Approve, arguments), True))

    @workflow.signal(description='Skip a waiting step: {"stepId": "...", "by": "...", "comment": "..."}')
    def deny(self, *arguments: Any) -> None:
        """A person does not let a step start."""
        self._try("deny", step_of(arguments), lambda: self._signal_decision(read(Deny, arguments), False))

    @workflow.signal(description="Start no further step until unpause.")
    def pause(self, *arguments: Any) -> None:
        """Running steps go on; nothing starts."""
        self._try("pause", None, lambda: self._control(read(Control, arguments, optional=True), "pause"))

    @workflow.signal(description="Let steps start again.")
    def unpause(self, *arguments: Any) -> None:
        """Steps start again."""
        self._try("unpause", None, lambda: self._control(read(Control, arguments, optional=True), "unpause"))

    @workflow.signal(description="End the review and start the plan.")
    def begin(self, *arguments: Any) -> None:
        """The review is over."""
        self._try("begin", None, lambda: self._control(read(Control, arguments, optional=True), "begin"))

    @workflow.signal(dynamic=True)
    def unknown(self, name: str, _: Sequence[RawValue]) -> None:
        """A signal nobody knows is said so in the log."""

        def refuse() -> None:
            raise Refused(f"there is no signal '{name[:100]}'", "UNKNOWN_SIGNAL")

        self._try("signal", None, refuse)

    @workflow.update(description='Approve or deny with an answer: {"stepId": "...", "approved": true}')
    def decide(self, *arguments: Any) -> dict[str, Any]:
        """As approve and deny; returns the decision as recorded."""
        message = read(Decide, arguments)
        return approvals.decide(self._started().run, message, workflow.now(), "update").model_dump(mode="json")

    @decide.validator
    def _may_decide(self, *arguments: Any) -> None:
        try:
            run = self._started().run
            if run.status in ENDED:
                raise Refused(f"the plan has ended ({run.status})", "PLAN_CLOSED")
            approvals.check(run, read(Decide, arguments))
        except PlanError as error:
            raise ApplicationError(error.message, type=error.code, non_retryable=True) from error

    @workflow.query(description="The plan with the status and result of every step.")
    def plan(self, *_: Any) -> dict[str, Any]:
        """The joined view (seed 004's Plan with statuses and results)."""
        return self._view()

    @workflow.query(description='Progress events after a number: {"since": 0}')
    def events(self, *arguments: Any) -> list[dict[str, Any]]:
        """Events numbered higher than `since`, at most `limit` (1,000)."""
        message = read(Since, arguments, optional=True)
        return views.events(self._started().run, message.since, message.limit)

    @workflow.query(description="The plan as text.")
    def text(self, *_: Any) -> str:
        """Seed 000's display."""
        return render.text(self._view())

    @workflow.query(description="Counts, duration, files written, what failed.")
    def summary(self, *_: Any) -> dict[str, Any]:
        """The summary so far; the last one when the plan has ended."""
        return render.summary_of(self._view())

    def _signal_decision(self, message: Approve | Deny, approved: bool) -> None:
        decision = Decide(approved=approved, **dict(message))
        approvals.decide(self._started().run, decision, workflow.now(), "signal")

    def _control(self, message: Control, what: str) -> None:
        schedule, now = self._started().schedule, workflow.now()
        by = f" by {message.by}" if message.by else ""
        if what == "begin":
            if schedule.run.status is not PlanStatus.REVIEW:
                raise Refused(f"the plan is {schedule.run.status}, not in review", "NOT_IN_REVIEW")
            schedule.run.note("begun", f"review ended{by}", now)
            schedule.begin(now)
        elif what == "pause" and not schedule.pause(now, f"paused{by}"):
            raise Refused(f"the plan is {schedule.run.status} and cannot be paused", "NOT_RUNNING")
        elif what == "unpause" and not schedule.unpause(now, f"unpaused{by}"):
            raise Refused(f"the plan is {schedule.run.status}, not paused", "NOT_PAUSED")
