"""Recovery of failed steps: the LLM chooses to retry, skip, insert steps or abort; a person may have to approve it.

During the LLM request the step is ready and awaiting recovery; other steps continue. The choice takes effect in the
next turn, through the same validated edits as a person's, and is recorded in the change log. Without a usable answer or
budget, the step fails with its original error.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from temporalio import workflow

from plansurvive.features.budget import model as budget
from plansurvive.features.planning import recovery
from plansurvive.features.planning.asking import Question, answered
from plansurvive.plans.change_log import Revision, logged
from plansurvive.plans.errors import PlanError, Unanswered
from plansurvive.plans.execution import approvals
from plansurvive.plans.llm.answers import Expected, Recovery
from plansurvive.plans.llm.json_extraction import AnswerProblem
from plansurvive.plans.log import LogKind
from plansurvive.plans.model import Budget, Step
from plansurvive.plans.run import Result, Run, Status
from plansurvive.plans.step_state import Outcome
from plansurvive.plans.usage import OVERRUN_CODE
from plansurvive.workflows import worker_facts
from plansurvive.workflows.execution import Execution
from plansurvive.workflows.in_steps import InSteps
from plansurvive.workflows.outcomes import skipped

RECOVERED = "SKIPPED_AFTER_FAILURE"
"""Code of the result of a step that the LLM chose to skip."""


class StepRecovery(InSteps):
    """The recoveries of one run. What must survive continue-as-new is in the step's `failure` and `proposal`."""

    def __init__(self, execution: Execution) -> None:
        self._execution, self._schedule = execution, execution.schedule
        self._requests: dict[str, asyncio.Task[None]] = {}
        self._answers: deque[tuple[str, Recovery | PlanError]] = deque()
        self._learning = asyncio.Lock()

    @property
    def in_flight(self) -> list[str]:
        """Ids of the steps with an LLM request in flight."""
        return list(self._requests)

    @property
    def has_news(self) -> bool:
        """Whether an answer arrived since the last turn."""
        return bool(self._answers)

    def takes(self, step_id: str, outcome: Outcome) -> bool:
        """Whether the outcome is a failure for the LLM to recover. If so, asks it; the step must not be settled."""
        if outcome.status is not Status.FAILED:
            return False
        run, now = self._run, workflow.now()
        if not recovery.is_due(run, self._schedule.step(step_id), outcome.result):
            return False
        state = run.steps[step_id]
        state.failure, state.deadline = outcome.result, None
        run.note(
            LogKind.MENDING,
            f"step '{step_id}' failed; asking the LLM how to recover: {outcome.result.error}",
            now,
            step_id,
        )
        self._schedule.ask(step_id, now, awaiting="recovery")
        self.ask(step_id)
        return True

    def ask(self, step_id: str) -> None:
        """Start an LLM request about a step that is awaiting recovery."""
        self._run.steps[step_id].recoveries += 1
        self._run.recoveries += 1
        self._requests[step_id] = asyncio.create_task(self._ask(step_id))

    def resume(self) -> None:
        """After continue-as-new: repeat the LLM requests of steps that are still awaiting recovery."""
        for step_id in self._schedule.recovering:
            if step_id not in self._requests:
                self.ask(step_id)

    def turn(self) -> None:
        """Act on the LLM's answers: carry out a choice, propose it to a person, or let the step fail."""
        while self._answers:
            step_id, choice = self._answers.popleft()
            self._requests.pop(step_id, None)
            if self._run.stopped:
                self._fail(step_id)
            elif isinstance(choice, PlanError):
                self._unanswered(step_id, choice)
            elif recovery.needs_approval(self._run) and choice.action != "abort":
                self._propose(step_id, {"recovery": choice.model_dump(mode="json", exclude_none=True)})
            else:
                self._apply(step_id, choice)

    def decided(self, step_id: str) -> bool:
        """Act on a person's decision about a proposed recovery; False when the step has no proposal."""
        state, proposal = self._run.steps[step_id], self._run.steps[step_id].proposal
        if proposal is None or state.status is Status.RUNNING:  # of a running step, its child has asked
            return False
        decision = self._run.decisions.pop(step_id)
        state.proposal = state.asked = None
        if "budget" in proposal:
            self._budget_decided(step_id, decision.approved)
        elif decision.approved:
            choice = Recovery.model_validate(proposal["recovery"])
            if choice.action == "retry" and decision.args is not None:  # the approver replaced the arguments
                choice = choice.model_copy(update={"args": decision.args})
            self._apply(step_id, choice)
            if choice.action == "retry" and not state.failure:  # approving the recovery approves the retried call
                step = self._schedule.step(step_id)
                self._run.decisions[step_id] = approvals.rebound(self._run, step, decision)
        else:
            self._fail(step_id)
        return True

    async def cancel(self) -> None:
        """Cancel all LLM requests and let the steps fail with their original errors."""
        for task in self._requests.values():
            task.cancel()
        await asyncio.gather(*self._requests.values(), return_exceptions=True)
        self._requests.clear()
        self._answers.clear()
        for step_id in list(self._schedule.recovering):
            self._fail(step_id)

    async def _ask(self, step_id: str) -> None:
        run, step = self._run, self._schedule.step(step_id)
        failure = run.steps[step_id].failure or Result(ok=False, timestamp=workflow.now())
        about = f"recovery of '{step_id}' {run.steps[step_id].recoveries} of {recovery.PER_STEP}"
        if run.paused:  # a pause is of requests as well; one that a person asks for (`regenerate`) is sent
            await workflow.wait_condition(lambda: not run.paused or bool(run.stopped))
            if run.stopped:
                self._answers.append((step_id, Unanswered(run.stopped, "INTERRUPTED")))
                return
        await self._learn(step)
        prompt = recovery.prompt(run, step, failure)
        goal = run.request or run.plan.title
        expected = Expected(kind="recovery", tools=recovery.tools(run, step), failed=step.tool, about=goal)
        question = Question("recovery", prompt, expected, about, step_id)
        try:
            choice: Recovery | PlanError = await answered(self._schedule, question, Recovery, self._judge(step))
        except PlanError as error:
            choice = error
        self._answers.append((step_id, choice))

    async def _learn(self, step: Step) -> None:
        """Make the tools of the step's workers known; of several recoveries at once, one asks and the others wait."""
        async with self._learning:
            trouble = await worker_facts.learn_for_recovery(self._run, step)
        if trouble:
            self._run.note(LogKind.WARNING, trouble, workflow.now(), step.id)

    def _judge(self, step: Step) -> Callable[[Recovery], Recovery | AnswerProblem]:
        def accept(choice: Recovery) -> Recovery | AnswerProblem:
            problems = recovery.choice_problems(self._run, step, choice, workflow.now())
            return AnswerProblem.of(problems) if problems else choice

        return accept

    def _propose(self, step_id: str, proposal: dict[str, object]) -> None:
        state = self._run.steps[step_id]
        self._run.decisions.pop(step_id, None)
        self._schedule.ask(step_id, workflow.now())
        state.proposal = proposal
        shown = recovery.shown(self._run, self._schedule.step(step_id), proposal)
        approvals.ask(self._run, step_id, *shown)

    def _unanswered(self, step_id: str, error: PlanError) -> None:
        text = f"step '{step_id}' was not recovered: {error.message}"
        self._run.note(LogKind.RECOVERY, text, workflow.now(), step_id, code=error.code)
        if error.code == OVERRUN_CODE and budget.may_ask(self._run):
            self._run.steps[step_id].recoveries -= 1  # no request was sent, so it does not count
            self._run.recoveries -= 1
            self._propose(step_id, {"budget": error.message})
        else:
            self._fail(step_id)

    def _budget_decided(self, step_id: str, approved: bool) -> None:
        budget.settle(self._run, budget.granted(self._run.plan.budget or Budget()) if approved else None)
        if not approved:
            return self._fail(step_id)
        self._schedule.answered(step_id)
        self._schedule.ask(step_id, workflow.now(), awaiting="recovery")
        return self.ask(step_id)

    def _apply(self, step_id: str, choice: Recovery) -> None:
        """Retry, skip, insert steps or abort. If the plan has changed so that this is impossible, the step fails."""
        run, now = self._run, workflow.now()
        step, text = self._schedule.step(step_id), recovery.sentence(step_id, choice)
        try:
            revised = recovery.applied(run, step, choice, now)
        except PlanError as error:
            impossible = f"{text}: no longer possible: {error.message}"
            run.note(LogKind.RECOVERY, impossible, now, step_id, code=error.code)
            return self._fail(step_id)
        run.note(LogKind.RECOVERY, text, now, step_id)
        if choice.action == "abort":
            run.aborted = True
            self._record(text)
            self._fail(step_id)
            return self._schedule.stop(text, now)
        if choice.action == "skip":
            self._record(text)
            run.steps[step_id].failure = None
            return self._execution.catch_or_settle(step_id, skipped(text, now, code=RECOVERED))
        run.steps[step_id].failure, run.steps[step_id].mended = None, text
        self._schedule.answered(step_id)
        if revised is None:
            return self._record(text)
        return self._execution.revise(revised)

    def _record(self, text: str) -> None:
        """Record in the change log a choice that does not change the plan."""
        run = self._run
        entry = Revision(version=run.plan.version, by=recovery.BY, time=workflow.now(), reason=text, ops=["recovery"])
        run.revisions = logged(run.revisions, entry)

    def _fail(self, step_id: str) -> None:
        """Settle the step with its original failure."""
        state, now = self._run.steps[step_id], workflow.now()
        failure = state.failure or Result(ok=False, error="failed", timestamp=now)
        state.failure = state.proposal = None
        self._schedule.settle(step_id, Outcome(Status.FAILED, failure), now)

    @property
    def _run(self) -> Run:
        return self._schedule.run
