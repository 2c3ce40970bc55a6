"""CodingAgentWorkflow: a program that speaks the Agent Client Protocol works on a step. It begins, works, ends.

A turn is a step of this workflow's own plan, a call of the tool `coding_agent`; a permission is one as well, a call of
`coding_agent.KIND`, so that approvals, views and records are those of plans; a terminal is a call of
`run_command`. A turn that has waited too long for a
decision ends, and the next one follows it.
"""

from __future__ import annotations

from typing import Any

from temporalio import workflow

from plansurvive.features.agents import reports
from plansurvive.features.agents.model import run as agent_run
from plansurvive.features.agents.model.run import AgentRun, End
from plansurvive.features.agents.model.tasks import MAX_TASKS, TaskList
from plansurvive.features.agents.workflow import AgentWorkflow
from plansurvive.features.coding_agents.model import (
    COMMAND,
    TOOL,
    CodingSession,
    MadeCall,
    cost_in,
    owes,
    permission_specs,
    turn_spec,
    unpaid,
)
from plansurvive.plans.activity_io import PastCall
from plansurvive.plans.errors import Unanswered
from plansurvive.plans.model import Step
from plansurvive.plans.run import Status, StepState
from plansurvive.plans.usage import OVERRUN_CODE, Usage
from plansurvive.plans.views.models.agents import Task, TaskStatus

ENDS: dict[str, End] = {"end_turn": "completed", "max_tokens": "tokens", "max_turn_requests": "iterations"}
"""How the agent's run ends, by the reason for which a turn has stopped; any other one fails it."""
WHY = {
    "max_tokens": "the coding agent has used up the tokens it may use",
    "max_turn_requests": "the coding agent has used up the requests it may send",
    "refusal": "the coding agent refuses to continue",
    "cancelled": "the coding agent says that it was cancelled, though it was not",
}


OWN_CALLS = 1_000_000
"""Where the numbers of calls of the agent's own tools begin: those before are of calls that go through ours."""


class CodingAgentWorkflow(AgentWorkflow):
    """Runs one coding agent. Registered as the class of the same name in `features.workflow_types`."""

    async def _begin(self) -> None:
        await super()._begin()
        run = self._agent.run
        judged = any(spec.judged for spec in run.facts.tools.values())
        # In 1.0.0 other arguments were taken, and denied the permission; a run that has begun so replays.
        as_asked = workflow.patched("coding-agent-as-asked")
        tools = {TOOL: turn_spec(judged), **permission_specs(judged, as_asked)}
        tools |= {name: spec for name, spec in run.facts.tools.items() if name == COMMAND}
        run.facts = run.facts.model_copy(update={"tools": tools})

    async def _work(self) -> None:
        """One turn after the other, until one ends the run; between them a person decides."""
        agent = self._agent
        while agent.end is None:
            if not await self._may_begin():
                return
            turn = self._next_turn()
            self._started().append([turn])
            await self._make_calls()
            self._end_turn(turn.id)
            await self._report()
            await self._continue_as_new_if_full()

    async def _may_begin(self) -> bool:
        """Wait for the end of a pause and for the plan's budget. Returns whether a turn may begin."""
        agent = self._agent
        await self._unpaused()
        if not agent.run.stopped and agent.link.asks and workflow.patched("coding-agent-budget"):
            try:
                await reports.permitted(agent, lambda: len(agent.order.request))
            except Unanswered as error:
                if error.code == OVERRUN_CODE:
                    agent_run.conclude(agent, "budget", error.message[:2_000], workflow.now())
        if agent.run.stopped and agent.end is None:
            agent_run.conclude(agent, "interrupted", agent.run.stopped, workflow.now())
        return agent.end is None

    def _next_turn(self) -> Step:
        agent, session = self._agent, self._agent.run.part(CodingSession)
        session.tokens = session.counted = 0
        args: dict[str, Any] = {"agent": session.agent, "prompt": agent.order.request}
        if agent.order.output_schema is not None:
            args["schema"] = agent.order.output_schema
        name = f"call_{len(agent.run.plan.steps) + 1}"
        return Step(id=name, tool=TOOL, args=args, description=f"a turn of {session.agent}", timeout=session.timeout)

    def _end_turn(self, turn: str) -> None:
        """What a turn comes to, once it and the permissions it has asked for have ended."""
        agent, state, now = self._agent, self._agent.run.steps[turn], workflow.now()
        value: dict[str, Any] = {}
        if state.status is Status.COMPLETED and state.result is not None and isinstance(state.result.value, dict):
            value, session = state.result.value, agent.run.part(CodingSession)
            session.value, session.given = value, []
            self._count(value.get("usage") or {})
        if agent.run.stopped:
            agent_run.conclude(agent, "interrupted", agent.run.stopped, now)
        elif state.status is not Status.COMPLETED:
            self._failed_with, why = _failure(state)
            agent_run.conclude(agent, "failed", why, now)
        elif not value.get("held") and not agent.run.part(CodingSession).messages:
            agent.answer, reason = str(value.get("text") or ""), str(value.get("stopReason"))
            agent_run.conclude(agent, ENDS.get(reason, "failed"), WHY.get(reason, ""), now)

    def _count(self, used: dict[str, Any]) -> None:
        """Add what the agent says that the turn has used."""
        agent, session = self._agent, self._agent.run.part(CodingSession)
        session.cost = cost_in(used) or session.cost
        if cost := unpaid(session):
            agent.run.ledger = agent.run.ledger.added(Usage(cost=cost), session.agent, "")
        prompt, completion = _number(used.get("inputTokens")), _number(used.get("outputTokens"))
        if not (prompt or completion):
            if session.tokens > session.counted:  # it has told them while it worked, and not at its end
                rest = Usage(calls=not session.counted, total_tokens=session.tokens - session.counted)
                agent.run.ledger = agent.run.ledger.added(rest, session.agent, "")
            return
        total = max(_number(used.get("totalTokens")), prompt + completion)
        usage = Usage(calls=1, prompt_tokens=prompt, completion_tokens=completion, total_tokens=total)
        usage = usage.minus(Usage(total_tokens=session.counted))  # what it has told while it worked is counted
        agent.run.ledger = agent.run.ledger.added(usage, session.agent, "")
        agent.asked += 1

    @workflow.signal(description="Sent by its plan: whether the agent may send its next LLM request.")
    def budget_answer(self, *arguments: Any) -> None:
        """As of any agent; here the turn that is under way waits for it, too."""
        super().budget_answer(*arguments)
        self._started().wake()

    async def _progressed(self) -> None:
        """Take over what the turn has reported so far: calls, for the plan; tokens and cost, for its budget."""
        agent, session = self._agent, self._agent.run.part(CodingSession)
        made, session.made = session.made, []
        if made:
            calls = [_record(call, session, agent.run.plan.id or "", index) for index, call in enumerate(made, 1)]
            session.told_calls += len(made)
            await reports.report_to_parent(agent, "", own=calls)
        if agent.link.asks and (session.tokens > session.counted or owes(session)):
            spent = Usage(calls=1, total_tokens=max(0, session.tokens - session.counted), cost=unpaid(session))
            agent.run.ledger = agent.run.ledger.added(spent, session.agent, "")
            session.counted, session.spending = session.tokens, "asked"
            agent.asked += 1
            await reports.report_to_parent(agent, "", request=agent.asked + 1, estimate=0)
        if agent.link.refusal:
            session.spending = "refused"
        elif not agent.link.asks or agent.link.permitted > agent.asked:
            session.spending = "granted"

    def _value(self) -> Any:
        agent = self._agent
        value = agent.run.part(CodingSession).value
        if agent.order.output_schema is not None:
            return value.get("answer")
        files = agent_run_files(agent)
        shown = {name: value.get(name) for name in ("text", "sessionId", "stopReason", "usage")}
        shown |= {"open": value["open"]} if value.get("open") else {}
        return {**shown, "files": files}

    async def _report(self, within_turn: bool = False) -> None:
        session = self._agent.run.part(CodingSession)
        if session.tasks and self._agent.tasks != (tasks := _task_list(session)):
            if self._agent.tasks is None or len(self._agent.tasks.tasks) != len(tasks.tasks):
                self._agent.link = self._agent.link.model_copy(update={"listed": False})
            self._agent.tasks = tasks
        await super()._report(within_turn)
        if within_turn:
            await self._progressed()


def _record(call: MadeCall, session: CodingSession, agent: str, index: int) -> PastCall:
    """A call of an own tool of the agent, as its plan records it."""
    shown = {"title": call.title, "input": call.input, "paths": call.paths}
    return PastCall(
        tool=f"{TOOL}.{call.kind}", args={name: value for name, value in shown.items() if value},
        result="completed" if call.ok else "Error: failed", time=call.began, agent=agent,
        number=OWN_CALLS + session.told_calls + index,
    )  # fmt: skip


def agent_run_files(agent: AgentRun) -> list[str]:
    """The files that the agent has changed, relative to the workspace."""
    from plansurvive.features.agents.model.reports.report import files_of

    found = files_of(agent)
    return sorted({*found.get("wrote", {}), *found.get("deleted", [])})[:1_000]


def _failure(state: StepState) -> tuple[str, str]:
    """Why a turn did not end well: code and sentence."""
    if state.result is not None and state.result.error:
        return state.result.code or "AGENT_FAILED", f"{state.result.code}: {state.result.error}"[:2_000]
    return "AGENT_FAILED", f"the turn was not made: {state.reason or state.status.value}"[:2_000]


def _task_list(session: CodingSession) -> TaskList:
    tasks = [
        Task(objective=text, status=TaskStatus.DONE if index < session.done else
             TaskStatus.CURRENT if index == session.done else TaskStatus.OPEN)
        for index, text in enumerate(session.tasks[:MAX_TASKS])
    ]  # fmt: skip
    return TaskList(tasks=tasks)


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**12 else 0
