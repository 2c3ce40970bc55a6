"""AgentWorkflow: an LLM with tools works through a request. `run` has three parts: begin, work, end.

Every LLM request is the activity `ask_llm`; every tool call is an activity named like the tool, and a step appended to
a plan, so that messages, approvals and views are those of plans. `model.tasks` decides what an answer means.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from plansurvive.features.agents import reports
from plansurvive.features.agents.model import resume
from plansurvive.features.agents.model import run as agent_run
from plansurvive.features.agents.model.answers import SimpleAnswer, ToolUse
from plansurvive.features.agents.model.order import AgentEnd, limit_reached
from plansurvive.features.agents.model.question import Outcome, as_text
from plansurvive.features.agents.model.reports.report import last_report
from plansurvive.features.agents.model.run import AgentRun, outcome_of, short_args
from plansurvive.features.agents.model.tasks import Decision, TaskList, after_calls, meaning_of, meaning_of_simple
from plansurvive.features.agents.questions import AgentReply, agent_answered
from plansurvive.features.agents.start import AgentRequest, agent_of_workflow, read_agent_request
from plansurvive.plans.definition.checks.calls import unknown_tool
from plansurvive.plans.definition.checks.validation import errors
from plansurvive.plans.definition.near_names import Hints
from plansurvive.plans.errors import InvalidPlan, Unanswered
from plansurvive.plans.execution.messages import BudgetAnswer, read
from plansurvive.plans.execution.tool_history import last_output
from plansurvive.plans.llm.prompt_parts import READ_RESULT
from plansurvive.plans.log import LogKind
from plansurvive.plans.model import Problem, ToolSpec
from plansurvive.plans.run import PlanStatus
from plansurvive.plans.usage import OVERRUN_CODE
from plansurvive.plans.views import markdown
from plansurvive.plans.views.summary import summary_of
from plansurvive.workflows import resume_check, search_attributes
from plansurvive.workflows.execution import Execution
from plansurvive.workflows.handlers import MessageHandlers
from plansurvive.workflows.inputs import invalid, require_own_id, why_refused
from plansurvive.workflows.worker_facts import facts_about


def read_on(agent: AgentRun, call: ToolUse) -> Outcome:
    """The whole value of a call, from an offset on; of one without a value, all that its commands wrote."""
    number, offset = int(call.args.get("call") or 0), int(call.args.get("offset") or 0)
    args = short_args(call.args)
    step_id = f"call_{number}"
    if step_id not in agent.run.steps:  # each has ended or cannot begin: the model answers after all calls of an answer
        return Outcome(
            tool=READ_RESULT, ok=False, state="failed", args=args, text=f"there is no result of call {number}"
        )
    whole, state = outcome_of(agent, step_id), agent.run.steps[step_id]
    if state.result is not None and state.result.ok and state.result.large is None:
        whole = whole.model_copy(update={"text": as_text(state.result.value), "length": None})
    own = {"tool": READ_RESULT, "offset": offset, "call": None, "args": args, "asked": None, "by": ""}
    return whole.model_copy(update={**own, "logs": last_output(state)})


EVENTS = 8_000
"""History events after which the workflow continues as new, between two LLM requests."""


def unknown_tools(names: Sequence[str], tools: Mapping[str, ToolSpec]) -> list[Problem]:
    """The problems of an order that names tools which are not there."""
    hints = Hints()
    texts = [unknown_tool(name[:200], tools, hints) for name in names]
    return [Problem(code="UNKNOWN_TOOL", field="tools", message=text) for text in texts]


class AgentWorkflow(MessageHandlers):
    """Runs one agent. Its id is `agent-<agentId>`; its result is the summary with the answer and the task list.

    Registered as the class of the same name in `features.workflow_types`, which adds the features.
    """

    _failed_with = "AGENT_FAILED"
    """The code with which a failed run ends."""

    def __init__(self, *arguments: Any) -> None:
        self._index = search_attributes.Index()
        self._reporter = reports.Reporter()
        try:
            self._open(read_agent_request(arguments, self.features.rules, self.features.views))
            self._opened(arguments)
        except InvalidPlan as error:
            self._invalid = error.problems

    async def run(self, *_: Any) -> dict[str, Any]:
        """Begin, work, end. Returns the summary; a failed agent raises AGENT_FAILED with it."""
        if self._invalid:
            raise invalid(self._invalid)
        agent, execution = self._agent, self._started()
        agent.run.created = agent.run.created or workflow.info().workflow_start_time
        self._keep_watch()
        try:
            if agent.run.status is PlanStatus.DRAFT:
                await self._begin()
            else:
                self._hear()
            execution.resume_timers()
            await self._work()
        except asyncio.CancelledError:
            await execution.cancel()
            agent_run.conclude(agent, "cancelled", "it was cancelled", workflow.now())
            await reports.report_the_rest(agent)
            await self._collaborators.cut_short()
            await self._end()
            raise
        return await self._end()

    def _open(self, request: AgentRequest) -> None:
        order, name = request.order, agent_of_workflow()
        agent = request.agent or (AgentRun.of(order, name, request.options) if order else None)
        if agent is None:
            raise InvalidPlan([])
        require_own_id(agent.run.plan.id or "", name)
        self._agent = agent
        self._execution = Execution(agent.run)

    async def _begin(self) -> None:
        """Fetch the worker's tools, on resume compare files, and record the start in the agent history."""
        agent, execution = self._agent, self._started()
        facts = await facts_about(agent.run, None, all_tools=True, part=self._admission.for_check())
        facts = await self.features.placed(agent.run, facts)
        if errors(facts.problems):
            agent_run.conclude(agent, "failed", why_refused(errors(facts.problems)), workflow.now())
            raise invalid(facts.problems)
        unknown = [name for name in agent.order.tools or () if name not in facts.tools]
        is_new = not agent.order.plan_id and not agent.run.resumes  # its plan's check has named those of a step
        if unknown and is_new and workflow.patched("agent-tools-known"):
            wrong = unknown_tools(unknown, facts.tools)
            agent_run.conclude(agent, "failed", why_refused(wrong), workflow.now())
            raise invalid(wrong)
        agent.run.facts = facts
        self._gather()
        self._judge()
        self._hear()
        if unknown:
            agent.run.note(LogKind.WARNING, f"unknown tools, ignored: {', '.join(unknown)[:500]}", workflow.now())
        if agent.run.resumes:
            self._leave_out()
            lines = [*agent.notice.splitlines(), *await resume_check.compare_files(agent.run)]
            agent.notice = "\n".join(dict.fromkeys(lines))
        execution.schedule.begin(workflow.now())
        await reports.begun(agent)

    def _leave_out(self) -> None:
        """Drop calls of the earlier run that cannot be made."""
        agent = self._agent
        resume.leave_out(agent, resume.without_tool(agent), "its tool is no longer there")
        self._started().append([])

    async def _work(self) -> None:
        """Alternate tool calls and LLM requests until an answer, a limit or an interrupt ends the run."""
        agent = self._agent
        while agent.end is None:
            await self._make_calls()
            self._take_outcomes()
            await self._report()
            await self._continue_as_new_if_full()
            if self._is_over():
                return
            await self._unpaused()
            if not agent.run.stopped:
                await self._ask()

    async def _unpaused(self) -> None:
        """Wait for the end of a pause, or of the run; its plan learns whether the agent was paused by itself."""
        run = self._agent.run

        def has_news_since(seen: int) -> Callable[[], bool]:
            return lambda: run.seq != seen or bool(run.stopped)

        while run.paused and not run.stopped:
            await self._report()
            await workflow.wait_condition(has_news_since(run.seq))

    async def _make_calls(self) -> None:
        """Run the tool calls of the last answer until all have finished. Waiting for people does not count as time."""
        agent, execution, began = self._agent, self._started(), workflow.now()
        waited = False
        while True:
            execution.turn()
            self._publish()
            if execution.schedule.idle:
                break
            waited = waited or bool(execution.schedule.awaiting) or agent.run.paused
            await self._report(within_turn=True)
            await workflow.wait_condition(lambda: execution.has_news)
        if not waited:
            self._add_time((workflow.now() - began).total_seconds())

    def _take_outcomes(self) -> None:
        """Queue the outcomes of the calls for the next LLM request. A task is done only if its last calls succeeded."""
        agent = self._agent
        if not resume.take_outcomes(agent):
            return  # interrupted: the run that resumes this one makes the rest, and then takes the outcomes
        if agent.decided is not None:
            decision = agent.decided
            if agent.before is not None:
                decision = after_calls(decision, agent.before, agent_run.failed_tools(agent, agent.called))
            self._accept(decision)
        agent.called, agent.decided, agent.before = [], None, None

    def _is_over(self) -> bool:
        """Whether the run has ended; concludes it when it was interrupted or reached a limit."""
        agent, now = self._agent, workflow.now()
        if agent.run.stopped:
            agent_run.conclude(agent, "interrupted", agent.run.stopped, now)
        elif (reached := limit_reached(agent.order.limits, agent.usage)) is not None:
            agent_run.conclude(agent, reached.value, agent_run.reason(agent, reached), now)
        return agent.end is not None

    async def _ask(self) -> None:
        """Send one LLM request and act on the answer; without a usable answer the agent fails."""
        agent, began = self._agent, workflow.now()
        try:
            reply = await agent_answered(agent)
        except Unanswered as error:
            if error.code == OVERRUN_CODE:
                agent_run.conclude(agent, "budget", error.message[:2_000], workflow.now())
            elif error.code != reports.INTERRUPTED:
                agent_run.conclude(agent, "failed", f"{error.code}: {error.message}"[:2_000], workflow.now())
            return
        finally:
            if workflow.in_workflow():  # not while a worker drops the run from its cache: there is no time then
                self._add_time((workflow.now() - began).total_seconds())
        if agent.run.stopped:
            return  # interrupted meanwhile: the answer is dropped, and the run that resumes this one asks again
        agent.notice = ""
        self._decide(reply)

    def _decide(self, reply: AgentReply) -> None:
        agent, limit, answer = self._agent, self._agent.order.limits.nudges, reply.answer
        if isinstance(answer, TaskList):
            agent.tasks, agent.splitting = answer, False  # the first task begins with the next answer
            agent.run.note(LogKind.TASK, f"{len(answer.tasks)} tasks: {agent.position}"[:1_000], workflow.now())
            return
        if isinstance(answer, SimpleAnswer):
            decision, before = meaning_of_simple(answer, agent.nudges, limit), None
        else:
            before = agent.tasks or TaskList.of([agent.order.request[:2_000]])
            decision = meaning_of(answer, before, agent.nudges, limit)
        agent.splitting = decision.plan_actions
        if decision.note:
            agent.run.note(LogKind.AGENT, decision.note, workflow.now())
        if decision.end is None:  # a final answer of the wrong form counts as one more nudge, see _finish
            agent.nudges = decision.nudges
        if decision.end is not None:
            self._finish(decision, decision.end, reply.form_problem)
        elif decision.calls:
            self._call(decision.calls)
            agent.decided, agent.before = decision.without_args(), before
        else:
            self._accept(decision)

    def _call(self, calls: Sequence[ToolUse]) -> None:
        """Append the tool calls as steps. READ_RESULT is answered here: it reads what the run holds."""
        agent = self._agent
        agent.unsent += [read_on(agent, call) for call in calls if call.tool == READ_RESULT]
        steps = agent_run.steps_of(agent, [call for call in calls if call.tool != READ_RESULT])
        agent.called = [step.id for step in steps]
        if steps:
            self._started().append(steps)

    def _accept(self, decision: Decision) -> None:
        """Take over the decided task list and notice; a finished task is added to the log."""
        agent = self._agent
        done = agent.tasks.remaining if agent.tasks else 0
        agent.tasks = decision.tasks or agent.tasks
        agent.notice = "\n".join(filter(None, [agent.notice, decision.notice]))  # a resumed run has one of its own
        if agent.tasks is not None and agent.tasks.remaining < done:
            agent.run.note(LogKind.TASK, agent.position, workflow.now())

    def _finish(self, decision: Decision, end: AgentEnd, form_problem: str) -> None:
        """End the run. A final answer that does not match the output schema goes back, `nudges` times at most."""
        agent, limits = self._agent, self._agent.order.limits
        is_complete = end is AgentEnd.COMPLETED
        problem = f"final answer: {form_problem}" if is_complete and form_problem else ""
        agent.tasks = decision.tasks or agent.tasks
        if problem and agent.nudges < limits.nudges:
            agent.nudges, agent.notice = agent.nudges + 1, problem
            return
        end = AgentEnd.STALLED if problem else end
        agent.answer, agent.confidence = decision.answer, decision.confidence
        agent_run.conclude(agent, end.value, problem or agent_run.reason(agent, end), workflow.now())

    async def _continue_as_new_if_full(self) -> None:
        info, limit = workflow.info(), self._agent.run.options.history_limit or EVENTS
        if info.is_continue_as_new_suggested() or info.get_current_history_length() >= limit:
            await workflow.wait_condition(workflow.all_handlers_finished)
            await self._collaborators.resting()
            agent = agent_run.lightened(self._agent)
            argument = {"agent": agent.model_dump(mode="json", exclude_defaults=True)}
            workflow.continue_as_new(argument, memo=self._admission.memo())

    async def _end(self) -> dict[str, Any]:
        agent = self._agent
        self._publish()
        summary = summary_of(self._started().run).to_json() | {"agent": agent_run.agent_view(agent)}
        summary["value"] = self._value() if agent.end == "completed" else None
        summary |= last_report(agent)
        await reports.ended(agent)
        await self._collaborators.ended()
        if agent.end == "failed":
            text = f"the agent failed: {agent.run.stopped}"
            raise ApplicationError(text, summary, type=self._failed_with, category=ApplicationErrorCategory.BENIGN)
        return summary

    def _value(self) -> Any:
        """What the run of a completed agent returns as its value."""
        return agent_run.answer_value(self._agent)

    @workflow.signal(description="Sent by its plan: whether the agent may send its next LLM request.")
    def budget_answer(self, *arguments: Any) -> None:
        """Sent by the plan to an agent or a child plan that asked: the LLM request of this number may be sent, or why
        it may not; `number` 0: the plan has a budget now, ask from now on.
        """

        def take() -> None:
            reports.answered(self._agent, read(BudgetAnswer, arguments))

        self._try("budget_answer", None, arguments, take, between=True)

    async def _report(self, within_turn: bool = False) -> None:
        await self._reporter.report(self._agent, list(self._started().schedule.awaiting), within_turn)

    def _add_time(self, seconds: float) -> None:
        usage = self._agent.usage
        self._agent.usage = usage.model_copy(update={"seconds": round(usage.seconds + seconds, 3)})

    def _view(self, arguments: Sequence[Any]) -> dict[str, Any]:
        return super()._view(arguments) | {"agent": agent_run.agent_view(self._agent)}

    def _text(self, arguments: Sequence[Any]) -> str:
        return super()._text(arguments) + agent_run.tasks_text(self._agent)

    def _clear_session(self, text: str) -> None:
        super()._clear_session(text)
        self._agent.guides_sent, self._agent.cleared = [], self._agent.cleared + 1

    def _state(self) -> dict[str, Any]:
        return self._agent.model_dump(mode="json", exclude_defaults=True)

    def _publish(self) -> None:
        run, schedule = self._started().run, self._started().schedule
        self._collaborators.shown()
        title = "" if self._index.titled else run.plan.title  # a title set at start may hold more of the request
        self._index.publish(run.status.value, schedule.awaiting, title, known=run.facts.search_attributes)

    def current_details(self) -> str:
        """The state as Markdown, for Temporal's UI when somebody looks (`runtime.workflow_runner`)."""
        tasks, begun = agent_run.tasks_text(self._agent), self._execution
        return f"{markdown.details(begun.run, begun.schedule)}\n{tasks}"[:19_000] if begun is not None else ""
