"""One run of an agent as a value: order, task list, usage, and the Run that holds its tool calls.

The tool calls are the steps of a plan that grows with every answer, so that approvals, file state, limits and views are
those of plans. Continue-as-new and resume pass it on as a whole. `model.tasks` decides what an answer means.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from plansurvive.features.agents.model.answers import Confidence, ToolUse
from plansurvive.features.agents.model.order import AgentEnd, AgentOrder, PlanLink
from plansurvive.features.agents.model.question import TEXT_CHARACTERS, CallEnd, Outcome, as_text
from plansurvive.features.agents.model.tasks import Decision, TaskList
from plansurvive.plans.activity_io import WORKER_LOST, Facts
from plansurvive.plans.definition.output_schema import value_of
from plansurvive.plans.execution import schedule
from plansurvive.plans.execution.tool_history import last_output
from plansurvive.plans.large_value import LargeValue
from plansurvive.plans.model import Plan, Step, ToolSpec
from plansurvive.plans.run import DONE, Options, PlanStatus, Run, State, Status, StepState
from plansurvive.plans.text.call_titles import call_title
from plansurvive.plans.views.models.agents import AgentUsage, TaskStatus

KEPT_CHARACTERS = 500
"""Characters of each argument of a tool call that its outcome has, and that are retained at continue-as-new."""
LOST = "LOST"
"""Code of a call that was running when its run ended without a trace of how the call did."""
UNCERTAIN = frozenset(("CANCELLED", WORKER_LOST, "OUTCOME_UNKNOWN", LOST))
"""Codes of calls that were running when they were given up: whether they happened, nobody knows."""
MAY_HAVE_HAPPENED = "it may have happened, wholly or in part"
NOT_FOR_AGENTS = frozenset(("agent", "ask", "wait_for", "plan", "coding_agent"))
"""Tools that only plans may use: an agent does the work itself, and answers the person who started it."""

End = Literal["completed", "stalled", "iterations", "tokens", "timeout", "budget", "interrupted", "cancelled", "failed"]


class AgentRun(State):
    """The state of an agent's run: its order and what has happened so far."""

    order: AgentOrder
    run: Run
    tasks: TaskList | None = None
    splitting: bool = Field(
        default=False, description="The model chose complex mode and has not returned the task list yet."
    )
    conversation: LargeValue | None = None
    unsent: list[Outcome] = Field(default_factory=list, description="Tool results that the model has not seen yet.")
    guides_sent: list[str] = Field(default_factory=list, description="Paths of the agents.md that the model was shown.")
    cleared: int = Field(default=0, description="How often its session was cleared.")
    guides_of: int = Field(default=0, description="The session, as counted by `cleared`, that `conversation` shows.")
    called: list[str] = Field(default_factory=list, description="Steps called whose results are not in `unsent` yet.")
    decided: Decision | None = Field(default=None, description="What follows once the steps in `called` have ended.")
    before: TaskList | None = Field(default=None, description="The task list before `decided`.")
    usage: AgentUsage = Field(default_factory=AgentUsage)
    nudges: int = 0
    notice: str = ""
    asked: int = Field(default=0, description="LLM requests attempted; numbers the requests.")
    link: PlanLink = Field(default_factory=PlanLink, description="Between it and the plan it works for, if any.")
    end: End | None = None
    answer: str = ""
    confidence: Confidence | None = None

    @classmethod
    def of(cls, order: AgentOrder, agent_id: str, options: Options) -> AgentRun:
        """A new run."""
        title = " ".join(order.request.split())[:200]
        run = Run.of(Plan(id=agent_id, title=title, steps=[]), options, Facts(), {})
        run.literal = True
        return cls(order=order, run=run)

    @property
    def tools(self) -> list[str]:
        """Names of the tools it may call."""
        available = self.run.facts.tools
        wanted = list(available) if self.order.tools is None else self.order.tools
        return [name for name in wanted if name in available and name not in NOT_FOR_AGENTS]

    @property
    def position(self) -> str:
        """Progress in one line."""
        if self.tasks is None:
            return "works without a task list"
        done = len(self.tasks.tasks) - self.tasks.remaining
        current = self.tasks.current
        return f"{done}/{len(self.tasks.tasks)} tasks done" + (f", now: {current.objective}" if current else "")


def steps_of(agent: AgentRun, calls: Sequence[ToolUse]) -> list[Step]:
    """Convert tool calls to steps. Calls on the same path, and commands, run in sequence; others concurrently."""
    specs, workspace = agent.run.facts.tools, agent.run.facts.workspace
    number = len(agent.run.plan.steps)
    steps: list[Step] = []
    for call in calls:
        number += 1
        earlier = [step.id for step in steps if _conflict(step, call, specs, workspace)]
        what = call_title(call.tool, call.args)
        steps.append(Step(id=f"call_{number}", tool=call.tool, args=call.args, description=what, depends_on=earlier))
    return steps


def ran_args(agent: AgentRun, step_id: str) -> dict[str, Any]:
    """The arguments a call ran with: those of the person who replaced the model's, if one did; the model's if none ran.

    The one place that decides this: every record of an agent's call, and what the model is told, go by it.
    """
    state, decision = agent.run.steps[step_id], agent.run.decisions.get(step_id)
    replaced = state.args is not None and state.calls > 0 and (decision is None or decision.approved)
    return agent.run.args_of(_step(agent, step_id)) if replaced else _step(agent, step_id).args


def asked_args(agent: AgentRun, step_id: str) -> dict[str, Any] | None:
    """The model's arguments, if a person replaced them and the call ran with other ones."""
    asked = _step(agent, step_id).args
    return None if asked == ran_args(agent, step_id) else asked


def outcome_of(agent: AgentRun, step_id: str) -> Outcome:
    """The result of a tool call that has ended, for the model."""
    run, state = agent.run, agent.run.steps[step_id]
    decision, result, end = run.decisions.get(step_id), state.result, _end_of(state)
    asked = asked_args(agent, step_id)
    head: dict[str, Any] = {
        "tool": _step(agent, step_id).tool, "call": call_number(step_id), "ok": end == "done", "state": end,
        "args": short_args(ran_args(agent, step_id)), "asked": None if asked is None else short_args(asked),
        "by": decision.by if decision else "", "again": _again(state),
    }  # fmt: skip
    if result is not None and end == "done":
        text = "" if result.large else as_text(result.value)
        length = len(text) if len(text) > TEXT_CHARACTERS else None
        return Outcome.model_validate({**head, "text": text[:TEXT_CHARACTERS], "length": length, "large": result.large})
    why = (result.error if result else None) or _why_blocked(agent, step_id) or state.reason or "it has not ended"
    # A denied call is reported with the person's comment, so that the model can react to it.
    comment = f": {decision.comment}" if decision and decision.comment and end == "denied" else ""
    made = "not made: " if state.status in (Status.BLOCKED, Status.SKIPPED) and not state.is_denied else ""
    text = f"{made}{why}{comment}" + (f"; {MAY_HAVE_HAPPENED}" if end == "unknown" else "")
    output = last_output(state)
    size = output.stdout + output.stderr if output else 0
    return Outcome.model_validate({**head, "text": text[:3_800], "output": size})


def _again(state: StepState) -> str:
    """What became of a call's attempts before the last one: all of them did something, or may have."""
    before = [call for call in state.past if call.retried and call.call == state.calls]
    lost = sum(call.attempt is not None and call.attempt.code == WORKER_LOST for call in before)
    if not before:
        return ""
    how = [f"{lost} lost with the worker, after all or part of what the call does"] if lost else []
    how += [f"{len(before) - lost} failed"] if len(before) > lost else []
    return f"made {len(before) + 1} times: before this, {', '.join(how)}"


def call_number(step_id: str) -> int:
    """The number of a call, from its step id: `call_2`, or `p2` of what a coding agent asks for."""
    return int(step_id.removeprefix("call_").removeprefix("p"))


def failed_tools(agent: AgentRun, step_ids: Sequence[str]) -> list[str]:
    """The tools of those calls that failed or were skipped."""
    tools = {step.id: step.tool for step in agent.run.plan.steps}
    return [tools[name] for name in step_ids if agent.run.steps[name].status is not Status.COMPLETED]


def answer_value(agent: AgentRun) -> Any:
    """The final answer; parsed as JSON if a schema was requested."""
    return value_of(agent.answer) if agent.order.output_schema and agent.answer else agent.answer


def conclude(agent: AgentRun, end: End, why: str, now: datetime) -> None:
    """End the run. Its status depends on `end` only, not on tool calls that failed."""
    statuses = {
        "completed": PlanStatus.COMPLETED, "failed": PlanStatus.FAILED,
        "interrupted": PlanStatus.CANCELLED, "cancelled": PlanStatus.CANCELLED,
    }  # fmt: skip
    schedule.conclude(agent.run, statuses.get(end, PlanStatus.PARTIAL), why, now)
    agent.end = end


def reason(agent: AgentRun, end: AgentEnd) -> str:
    """Why the run ended, in a sentence; empty if it completed."""
    limits = agent.order.limits
    return {
        AgentEnd.COMPLETED: "",
        AgentEnd.STALLED: "the model made no progress: no tool call and no completed task despite reminders",
        AgentEnd.ITERATIONS: f"the limit of {limits.iterations} LLM requests is used up",
        AgentEnd.TOKENS: f"the limit of {limits.tokens} tokens is used up",
        AgentEnd.TIMEOUT: f"the limit of {limits.seconds:g} seconds is used up",
    }[end]


def agent_view(agent: AgentRun) -> dict[str, Any]:
    """The agent as JSON data for clients (an AgentView), without its tool calls."""
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
    """The task list and the answer as text for people."""
    marks = {TaskStatus.DONE: "✓", TaskStatus.CURRENT: ">", TaskStatus.OPEN: " "}
    tasks = agent.tasks.tasks if agent.tasks else []
    rows = [
        f"  [{marks[task.status]}] {task.objective}" + (f": {task.summary}" if task.summary else "") for task in tasks
    ]
    head = ["", "Tasks:", *rows] if rows else []
    return "\n".join([*head, *(["", f"Answer: {agent.answer}"] if agent.answer else [])])


def lightened(agent: AgentRun) -> AgentRun:
    """Truncate long arguments of finished tool calls, for continue-as-new. Changes `agent`."""
    run = agent.run
    done = {name for name, state in run.steps.items() if state.status in DONE}
    steps = [
        step.model_copy(update={"args": short_args(step.args)}) if step.id in done else step for step in run.plan.steps
    ]
    run.plan = run.plan.model_copy(update={"steps": steps})
    for state in run.steps.values():
        if state.status in DONE and state.args is not None:
            state.args = short_args(state.args)
    return agent


def short_args(args: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments with long ones truncated. Truncating twice is as truncating once."""
    cut = {name: value for name, value in args.items() if len(as_text(value)) > KEPT_CHARACTERS}
    return {**args, **{name: as_text(value)[:KEPT_CHARACTERS] + "...[truncated]" for name, value in cut.items()}}


def _step(agent: AgentRun, step_id: str) -> Step:
    return next(step for step in agent.run.plan.steps if step.id == step_id)


def _end_of(state: StepState) -> CallEnd:
    """How a call ended. One that was left out of a resumed run never began."""
    if state.result is not None and state.result.ok:
        return "done"
    if state.is_denied:
        return "unanswered" if state.is_unanswered else "denied"
    if state.status is Status.SKIPPED:
        return "interrupted"
    return "unknown" if state.result is not None and state.result.code in UNCERTAIN else "failed"


def _why_blocked(agent: AgentRun, step_id: str) -> str:
    """Why a call was not made that waits for one that may have happened; empty if it waits for none."""
    if agent.run.steps[step_id].status is not Status.BLOCKED:
        return ""
    needs = (name for name in _step(agent, step_id).depends_on if _end_of(agent.run.steps[name]) == "unknown")
    return next((f"the outcome of '{name}' is unknown" for name in needs), "")


def _conflict(step: Step, call: ToolUse, specs: Mapping[str, ToolSpec], workspace: str) -> bool:
    first, second = specs[step.tool], specs[call.tool]
    if first.effect == "pure" and second.effect == "pure":
        return False
    paths = _paths(step.args, workspace), _paths(call.args, workspace)
    if (not paths[0] and first.effect != "pure") or (not paths[1] and second.effect != "pure"):
        return True  # without a path, it may touch any file
    return bool(paths[0] & paths[1])


def _paths(args: Mapping[str, Any], workspace: str) -> set[str]:
    return {
        posixpath.normpath(posixpath.join(workspace, value))
        for name, value in args.items()
        if name == "path" and isinstance(value, str)
    }
