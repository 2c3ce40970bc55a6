"""One run of an agent as a value: its order, its task list, what it used, and the Run that holds its tool calls.

The tool calls are the steps of a plan that grows with every answer, so that approvals, file state, limits and views are
those of plans. Carried whole by continue-as-new and by resume. What an answer means is decided by `plans.agents.tasks`.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from plans.activity_io import Facts, LargeValue
from plans.agents.answers import Confidence, ToolUse
from plans.agents.limits import AgentEnd, AgentUsage
from plans.agents.order import AgentOrder
from plans.agents.question import Outcome, as_text
from plans.agents.tasks import TaskList, TaskStatus
from plans.definition.output_schema import form_problem, value_of
from plans.execution import schedule
from plans.llm.prompt_parts import READ_RESULT
from plans.model import Plan, Step, ToolSpec
from plans.run import DONE, Options, PlanStatus, Run, State, Status

KEPT_CHARACTERS = 500
"""Of each argument of a call that has ended, when the run goes on in a new run of the workflow."""
NOT_FOR_AGENTS = frozenset(("agent", "ask", "plan"))
"""Tools of plans that an agent does not call: it does the work itself, and answers the person who asked."""

End = Literal["completed", "stalled", "iterations", "tokens", "timeout", "interrupted", "cancelled", "failed"]


class AgentRun(State):
    """An order and what happened to it."""

    order: AgentOrder
    run: Run
    tasks: TaskList | None = None
    splitting: bool = Field(default=False, description="The model chose a task list and is to write it.")
    conversation: LargeValue | None = None
    unsent: list[Outcome] = Field(default_factory=list, description="Tool results the model has not seen.")
    guides_sent: list[str] = Field(default_factory=list, description="The agents.md the model was shown.")
    called: list[str] = Field(default_factory=list, description="Steps whose results are not among them yet.")
    usage: AgentUsage = Field(default_factory=AgentUsage)
    nudges: int = 0
    notice: str = ""
    asked: int = Field(default=0, description="LLM calls made or tried, by which each gets its number.")
    end: End | None = None
    answer: str = ""
    confidence: Confidence | None = None

    @classmethod
    def of(cls, order: AgentOrder, agent_id: str, options: Options) -> AgentRun:
        """A run in which nothing has happened."""
        title = " ".join(order.request.split())[:200]
        run = Run.of(Plan(id=agent_id, title=title, steps=[]), options, Facts(), {})
        run.literal = True
        return cls(order=order, run=run)

    @property
    def tools(self) -> list[str]:
        """Names of the tools it may call."""
        there = self.run.facts.tools
        wanted = list(there) if self.order.tools is None else self.order.tools
        return [name for name in wanted if name in there and name not in NOT_FOR_AGENTS]

    @property
    def position(self) -> str:
        """Where it stands, in a line."""
        if self.tasks is None:
            return "works without a task list"
        done = len(self.tasks.tasks) - self.tasks.remaining
        current = self.tasks.current
        return f"{done}/{len(self.tasks.tasks)} tasks done" + (f", now: {current.objective}" if current else "")


def steps_of(agent: AgentRun, calls: Sequence[ToolUse]) -> list[Step]:
    """Tool calls as steps: those that touch the same path, and commands, one after the other."""
    specs, workspace = agent.run.facts.tools, agent.run.facts.workspace
    number = len(agent.run.plan.steps)
    made: list[Step] = []
    for call in calls:
        number += 1
        earlier = [step.id for step in made if _collide(step, call, specs, workspace)]
        path = call.args.get("path")
        what = f"{call.tool} {path}" if isinstance(path, str) else call.tool
        made.append(
            Step(id=f"call_{number}", tool=call.tool, args=call.args, description=what[:200], depends_on=earlier)
        )
    return made


def outcome_of(agent: AgentRun, step_id: str) -> Outcome:
    """What the model is told of a call that has ended."""
    step = next(step for step in agent.run.plan.steps if step.id == step_id)
    state = agent.run.steps[step_id]
    found = {"tool": step.tool, "call": number_of(step_id)}
    result = state.result
    if result is not None and result.ok:
        text = "" if result.large else as_text(result.value)
        return Outcome.model_validate({**found, "text": text[:16_000], "large": result.large})
    why = (result.error if result else None) or state.reason or "not made"
    comment = agent.run.decisions[step_id].comment if step_id in agent.run.decisions else ""
    text = f"{why}{f': {comment}' if comment and state.status is Status.SKIPPED else ''}"
    return Outcome.model_validate({**found, "ok": False, "text": text[:4_000]})


def read_on(agent: AgentRun, call: ToolUse) -> Outcome:
    """The answer to the orchestrator's own tool `read_result`."""
    number, offset = call.args.get("call"), call.args.get("offset") or 0
    step_id = f"call_{number}"
    if step_id not in agent.run.steps or agent.run.steps[step_id].status not in DONE:
        return Outcome(tool=READ_RESULT, ok=False, text=f"there is no result of call {number}")
    whole = outcome_of(agent, step_id)
    state = agent.run.steps[step_id]
    if state.result is not None and state.result.ok and state.result.large is None:
        whole = whole.model_copy(update={"text": as_text(state.result.value)})
    return whole.model_copy(update={"tool": READ_RESULT, "offset": int(offset), "call": None})


def number_of(step_id: str) -> int:
    """The number of a call."""
    return int(step_id.rpartition("_")[2])


def failed_tools(agent: AgentRun, step_ids: Sequence[str]) -> list[str]:
    """The tools of those calls that did not succeed."""
    tools = {step.id: step.tool for step in agent.run.plan.steps}
    return [tools[name] for name in step_ids if agent.run.steps[name].status is not Status.COMPLETED]


def answer_problem(agent: AgentRun, answer: str) -> str:
    """What keeps a final answer from being what was ordered; empty when nothing does."""
    if agent.order.output_schema is None:
        return ""
    problem = form_problem(agent.order.output_schema, answer)
    return f"final answer: {problem}" if problem else ""


def answer_value(agent: AgentRun) -> Any:
    """The final answer; as JSON where a schema was ordered."""
    return value_of(agent.answer) if agent.order.output_schema and agent.answer else agent.answer


def conclude(agent: AgentRun, end: End, why: str, now: datetime) -> None:
    """The run has ended so; its status follows from that and not from the calls that failed on the way."""
    statuses = {
        "completed": PlanStatus.COMPLETED, "failed": PlanStatus.FAILED,
        "interrupted": PlanStatus.CANCELLED, "cancelled": PlanStatus.CANCELLED,
    }  # fmt: skip
    schedule.conclude(agent.run, statuses.get(end, PlanStatus.PARTIAL), why, now)
    agent.end = end


def reason(agent: AgentRun, end: AgentEnd) -> str:
    """Why it ended, in a sentence; empty when it has done its work."""
    limits = agent.order.limits
    return {
        AgentEnd.COMPLETED: "",
        AgentEnd.STALLED: "the model went on without a tool call or a finished task",
        AgentEnd.ITERATIONS: f"it used up its {limits.iterations} model calls",
        AgentEnd.TOKENS: f"it used up its {limits.tokens} tokens",
        AgentEnd.TIMEOUT: f"it used up its {limits.seconds:g} seconds",
    }[end]


def agent_view(agent: AgentRun) -> dict[str, Any]:
    """What a client sees of the agent besides its calls."""
    return {
        "request": agent.order.request,
        "mode": "simple" if agent.tasks is None else "complex",
        "tasks": [task.model_dump(mode="json", exclude_defaults=True) | {"status": task.status.value}
                  for task in (agent.tasks.tasks if agent.tasks else [])],
        "end": agent.end,
        "answer": agent.answer,
        "confidence": agent.confidence,
        "usage": agent.usage.model_dump(mode="json"),
        "limits": agent.order.limits.model_dump(mode="json"),
        "planId": agent.order.plan_id or None,
        "stepId": agent.order.step_id or None,
    }  # fmt: skip


def tasks_text(agent: AgentRun) -> str:
    """The task list for people, and the answer."""
    marks = {TaskStatus.DONE: "✓", TaskStatus.CURRENT: ">", TaskStatus.OPEN: " "}
    tasks = agent.tasks.tasks if agent.tasks else []
    rows = [
        f"  [{marks[task.status]}] {task.objective}" + (f": {task.summary}" if task.summary else "") for task in tasks
    ]
    head = ["", "Tasks:", *rows] if rows else []
    return "\n".join([*head, *(["", f"Answer: {agent.answer}"] if agent.answer else [])])


def lightened(agent: AgentRun) -> AgentRun:
    """As it goes on in a new run of the workflow: long arguments of calls that have ended are cut."""
    run = agent.run
    done = {name for name, state in run.steps.items() if state.status in DONE}
    steps = [step.model_copy(update={"args": _cut(step.args)}) if step.id in done else step for step in run.plan.steps]
    run.plan = run.plan.model_copy(update={"steps": steps})
    return agent


def resumed(agent: AgentRun, new_id: str, now: datetime, by: str = "") -> AgentRun:
    """A run that goes on from an ended one, with its task list, its conversation and its file state."""
    made = agent.model_copy(deep=True)
    run, old = made.run, agent.run.plan.id or ""
    run.plan = run.plan.model_copy(update={"id": new_id})
    schedule.reset_to_draft(run)
    run.resumes, run.interrupted = old, False
    made.end, made.nudges, made.usage = None, 0, AgentUsage()
    pending = [name for name in made.called if run.steps[name].status not in DONE]
    made.unsent += [
        outcome_of(made, name) if name not in pending else Outcome(
            tool=_tool(run, name), ok=False, call=number_of(name), text="not made: the run was interrupted"
        )
        for name in made.called
    ]  # fmt: skip
    made.called = []
    for name in pending:
        run.steps[name] = schedule.left_out("the run was interrupted", opens=False)
    run.note("resumes", f"resumes '{old}'{f' by {by}' if by else ''}: {made.position}", now)
    return made


def for_step(kept: AgentRun, order: AgentOrder, new_id: str, now: datetime) -> AgentRun:
    """A run that goes on with a step of a plan that was resumed; one that had its answer already has it still."""
    if kept.end == "completed":
        made = kept.model_copy(deep=True)
        made.run.plan = made.run.plan.model_copy(update={"id": new_id})
    else:
        made = resumed(kept, new_id, now)
    made.order = order
    return made


def _tool(run: Run, step_id: str) -> str:
    return next(step.tool for step in run.plan.steps if step.id == step_id)


def _cut(args: Mapping[str, Any]) -> dict[str, Any]:
    cut = {name: value for name, value in args.items() if len(as_text(value)) > KEPT_CHARACTERS}
    return {**args, **{name: as_text(value)[:KEPT_CHARACTERS] + "...[truncated]" for name, value in cut.items()}}


def _collide(step: Step, call: ToolUse, specs: Mapping[str, ToolSpec], workspace: str) -> bool:
    first, second = specs[step.tool], specs[call.tool]
    if first.effect == "pure" and second.effect == "pure":
        return False
    paths = _paths(step.args, workspace), _paths(call.args, workspace)
    if (not paths[0] and first.effect != "pure") or (not paths[1] and second.effect != "pure"):
        return True  # a command may touch anything
    return bool(paths[0] & paths[1])


def _paths(args: Mapping[str, Any], workspace: str) -> set[str]:
    return {
        posixpath.normpath(posixpath.join(workspace, value))
        for name, value in args.items()
        if name == "path" and isinstance(value, str)
    }
