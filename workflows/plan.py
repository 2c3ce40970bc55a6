"""PlanWorkflow: one plan from draft to summary. `run` has four parts: draft, review, execute, summarize.

Facts about the world come only from the activity `check_plan`, run once per task queue that steps are bound to. When
the history is full, the workflow continues as new with the Run. `MessageHandlers` and the features handle messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from plansurvive.plans.activity_io import Facts
from plansurvive.plans.children import asked
from plansurvive.plans.definition.checks.validation import condition_problems, errors, input_values
from plansurvive.plans.definition.parsing import read_plan
from plansurvive.plans.editing.taken_over import tool_problems
from plansurvive.plans.errors import InvalidPlan
from plansurvive.plans.execution.closing import advance
from plansurvive.plans.execution.history_limit import HistoryLimit, Move
from plansurvive.plans.model import Plan, Problem
from plansurvive.plans.run import PlanStatus, Run, own_steps
from plansurvive.plans.views import markdown, queries
from plansurvive.plans.views.steps.standing import folded_ids
from plansurvive.workflows import completion, resume_check, search_attributes
from plansurvive.workflows.completion import carried, failure_of, recorded, set_value, with_value
from plansurvive.workflows.execution import Execution
from plansurvive.workflows.handlers import MessageHandlers
from plansurvive.workflows.inputs import (
    REFUSED,
    PlanRequest,
    invalid,
    plan_of_workflow,
    read_request,
    require_own_id,
    why_refused,
)
from plansurvive.workflows.worker_facts import facts_about


class PlanWorkflow(MessageHandlers):
    """Runs one plan. Its id is `plan-<planId>`; its result is the summary.

    Registered as the class of the same name in `features.workflow_types`, which adds the features.
    """

    def __init__(self, *arguments: Any) -> None:
        self._index, self._info = search_attributes.Index(), workflow.info()
        self._patience: asyncio.Task[None] | None = None
        self._resumed = self._is_over = False
        try:
            self._open(read_request(arguments, self.features.rules, self.features.views))
            self._opened(arguments)
        except InvalidPlan as error:
            self._invalid = error.problems
        for argument in arguments:
            if isinstance(argument, dict):
                argument.clear()  # the SDK holds the arguments as long as the run: for a big plan most of its memory

    async def run(self, *_: Any) -> dict[str, Any]:
        """Draft, review, execute, summarize. Returns the summary.

        A failed or partial plan raises PLAN_FAILED or PLAN_PARTIAL with it.
        """
        if self._invalid:
            raise invalid(self._invalid)
        run = self._started().run
        run.created = run.created or workflow.info().workflow_start_time
        if run.status is not PlanStatus.DRAFT:
            self._hear()
        self._keep_watch()
        self._freed = asyncio.create_task(completion.freed(self._started(), lambda: self._is_over))
        cancelled, is_over = False, False
        while not is_over:
            try:
                await self._work(run)
                is_over = True
            except asyncio.CancelledError:
                cancelled, is_over = True, not await completion.goes_on(self._started())
        summary = await self._summarize(cancelled)
        self._is_over = True
        if completion.ends_cancelled(run, cancelled):
            raise asyncio.CancelledError
        return summary

    async def _work(self, run: Run) -> None:
        """Draft, review, execute and close the plan. After a cancellation, only what is left of it: to close it."""
        if run.status is PlanStatus.DRAFT:
            # Of a plan that is resumed, the request has been met.
            is_unwritten = run.request and not run.resumes
            await (self._draft() if is_unwritten else self._check())
        if run.status is PlanStatus.REVIEW and run.started is None:
            await self._review()
        await self._execute()

    def _open(self, request: PlanRequest) -> None:
        own = plan_of_workflow()
        if request.run is not None:
            require_own_id(request.run.plan.id or "", own)
            self._execution = Execution(request.run)
            return
        if request.request is not None:
            self._execution = Execution(self._requested(request, request.request, own))
            return
        plan = read_plan(request.plan)
        problems = plan if isinstance(plan, list) else condition_problems(plan)
        if isinstance(plan, list) or problems:
            raise InvalidPlan(problems)
        require_own_id(plan.id, own)
        plan = plan.model_copy(update={"id": own})
        self._execution = Execution(Run.of(plan, request.options, Facts(), {}))
        # A plan that a step starts may have been written by an LLM: it owns what the plan of the step owns. One that an
        # agent starts over MCP waives nothing, so it owns nothing.
        counts = workflow.info().parent is None and request.options.waivers
        self._execution.run.owns = plan.owns if counts else request.options.owns

    def _requested(self, request: PlanRequest, text: str, own: str) -> Run:
        """A Run without steps, for a plan that the LLM will write."""
        fields = request.plan if isinstance(request.plan, dict) else {}
        plan = Plan.model_validate({**fields, "id": fields.get("id") or own, "steps": []})
        require_own_id(plan.id, own)
        run = Run.of(plan, request.options, Facts(), {})
        run.request = text
        return run

    @workflow.query(description="The plan as a plan file, without statuses and results.")
    def file(self, *_: Any) -> dict[str, Any]:
        """The plan as a plan file."""
        return queries.file(self._started().run)

    @workflow.query(description="The tools the plan's workers offer, by name, with their argument schemas.")
    def tools(self, *_: Any) -> dict[str, Any]:
        """The tools of its workers, with their schemas."""
        return queries.tools(self._started().run)

    async def _check(self) -> None:
        """Validate the plan against its workers' tools and store their facts; then review or begin."""
        run = self._started().run
        own = own_steps(run)  # what an earlier run edited inside its blocks and loops may use other tools
        all_tools, part = run.options.review or bool(own), self._admission.for_check()
        facts = await facts_about(run, run.plan, all_tools=all_tools, part=part)
        problems = [*facts.problems, *self.features.unfit(run, facts)]
        if own:
            problems += tool_problems(own, facts.tools)
        if errors(problems):
            raise await self._refused(facts, problems)
        run.facts = await self.features.placed(run, facts)
        self._gather()
        run.inputs = input_values(run.plan, run.options.inputs)[0]
        self._started().schedule.rules.checked(run, workflow.now())
        self._judge()
        self._hear()
        if run.resumes:
            await resume_check.compare_files(run)
        if run.options.review:
            self._started().schedule.review()
        else:
            self._started().schedule.begin(workflow.now())

    async def _refused(self, facts: Facts, problems: Sequence[Problem]) -> ApplicationError:
        """End the plan, which its workers refuse; their features hear of it first. Returns the error to raise."""
        schedule = self._started().schedule
        for kind in self.features.in_run:
            if kind.feature in facts.features:
                await kind.refused(schedule.run, facts, problems)
        now = workflow.now()
        schedule.run.problems = errors(list(problems))
        schedule.stop(REFUSED, now)
        schedule.end(now)
        schedule.run.stopped = why_refused(schedule.run.problems)  # the steps that it keeps from running have it short
        self._index.publish(PlanStatus.FAILED.value, (), "", known=False)
        return invalid(problems)

    async def _draft(self) -> None:
        """Have a feature write the plan. It then goes into review, unless it is valid and no review was asked for."""
        execution = self._started()
        run = execution.run
        facts = await facts_about(run, None, all_tools=True, part=self._admission.for_check())
        if errors(facts.problems):
            raise await self._refused(facts, facts.problems)
        run.facts = await self.features.placed(run, facts)
        self._gather()
        self._judge()
        self._hear()
        self._publish()
        if not await self._collaborators.write():
            text = "the plan is asked for in words, and no feature of its worker writes plans"
            raise await self._refused(facts, [Problem(code="NO_PLANNER", message=text)])
        run.inputs = input_values(run.plan, run.options.inputs)[0]
        if not run.options.review and not run.problems:
            execution.schedule.begin(workflow.now())

    async def _review(self) -> None:
        """Wait until a person begins the plan."""
        run = self._started().run
        while run.status is PlanStatus.REVIEW and not run.interrupted:
            self._publish()
            await self._change(run, run.seq)
            if run.status is PlanStatus.REVIEW and workflow.info().is_continue_as_new_suggested():
                await self._continue_as_new()

    async def _change(self, run: Run, seen: int) -> None:
        await workflow.wait_condition(lambda: run.seq != seen)

    async def _execute(self) -> None:
        """Run turns until nothing is running and nothing can start, and the plan is closed.

        Continues as new when the history is full.
        """
        execution = self._started()
        if not self._resumed:  # it comes here again after a cancellation, to close the plan
            execution.resume_timers()
        self._resumed = True
        limit = HistoryLimit(execution.run.options.history_limit)
        while True:
            move = self._next_move(limit)
            # What has waited while a feature held the run comes before any further step.
            execution.turn(starting=self._collaborators.turn() and move is Move.START and not self._waiting)
            self._publish()
            if self._waiting:
                await workflow.wait_condition(lambda: not self._waiting)
                continue
            if await self._collaborators.turned():
                continue
            if execution.schedule.idle and not self._stays_open:
                if not advance(execution.schedule, workflow.now()):
                    return
                continue
            if move is not Move.START and not execution.in_flight:
                await self._continue_as_new()
            await self._news(limit.until)

    @property
    def _stays_open(self) -> bool:
        """Whether a plan with nothing left to do must stay open, because a revision may add steps."""
        run = self._started().run
        return not run.stopped and (run.status is PlanStatus.REVIEW or self._collaborators.keeps_open())

    def _next_move(self, limit: HistoryLimit) -> Move:
        info, execution, full = self._info, self._started(), True
        if not limit.is_full(info.get_current_history_length, info.is_continue_as_new_suggested()):
            return Move.START
        events, size = info.get_current_history_length(), info.get_current_history_size()
        if limit.has_room(events, size, len(execution.run.steps)):
            full = False
        if full and workflow.cancellation_reason() is not None and not limit.is_near_the_end(events, size):
            full = False
        return limit.decide(events, size, full, execution.in_flight, workflow.now())

    async def _news(self, until: datetime | None) -> None:
        """Wait for news, or until `until`, when waiting for steps in flight before continue-as-new ends."""
        execution = self._started()
        if until is not None and self._patience is None:
            seconds = max(0.0, (until - workflow.now()).total_seconds())
            self._patience = asyncio.create_task(workflow.sleep(seconds, summary="wait for running steps"))
        patience = self._patience
        await workflow.wait_condition(
            lambda: execution.has_news or (patience is not None and patience.done() and not execution.is_held)
        )
        if patience is not None and patience.done():
            self._patience = None

    async def _continue_as_new(self) -> None:
        """Continue as new with the Run as the only state; handlers finish first, as their answers would be lost."""
        await workflow.wait_condition(workflow.all_handlers_finished)
        await self._collaborators.resting()
        argument = carried(self._started().run)
        self._is_over = True
        workflow.continue_as_new(args=[argument], memo=self._admission.memo())

    async def _summarize(self, cancelled: bool = False) -> dict[str, Any]:
        execution = self._started()
        execution.schedule.end(workflow.now(), cancelled or execution.run.was_cut_short)
        if not cancelled:
            await set_value(execution.run)
        else:
            await self._collaborators.cut_short()
        summary = await recorded(execution.run)
        summary = self._collaborators.returned(summary) or with_value(execution.run, summary)
        self._publish()
        await self._collaborators.ended()
        if failure := failure_of(execution.run, summary):
            raise failure
        return summary

    def _publish(self) -> None:
        """Show the state in Temporal's UI: search attributes and memo when they changed."""
        execution = self._started()
        run = execution.run
        self._collaborators.shown()
        known = run.facts.search_attributes
        below = (item.path for each in asked.below(execution.schedule) for item in each.asked)
        names = [*execution.schedule.awaiting, *below]
        awaiting = folded_ids(names) if names else names
        self._index.publish(str(run.status), awaiting, run.plan.title, known=known)
        if run.host is not None:
            self._index.publish_host(run.host.name)
        if run.revisions:
            self._index.publish_memo(run.plan.title, len(run.plan.steps), run.time_limit)

    def current_details(self) -> str:
        """The state as Markdown, for Temporal's UI when somebody looks (`runtime.workflow_runner`)."""
        execution = self._execution
        return "" if execution is None else markdown.details(execution.run, execution.schedule)
