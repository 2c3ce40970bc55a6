"""What views show of a step that an agent works on: its task list, what the agent asks, where to look at it.

Tasks are done in order, so only the number of those that are done is known. The next one is current while the step is
running.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from plansurvive.features.agents.model.as_plan import TOOL
from plansurvive.features.agents.model.order import agent_of_step
from plansurvive.plans.child_state import Asked, AtWork
from plansurvive.plans.in_views import Below, InViews, Member
from plansurvive.plans.model import Step
from plansurvive.plans.step_state import Status, StepState
from plansurvive.plans.text.safe_text import line
from plansurvive.plans.views.models import TaskView

MARKS = {"done": "✓", "current": ">", "open": " "}


def tasks_of(state: StepState) -> list[TaskView]:
    """The step's task list with the status of each task; empty if it has none."""
    work = state.known_part(AtWork)
    if work is None:
        return []
    done, current = work.done, work.done if state.status is Status.RUNNING else -1

    def status(index: int) -> Literal["done", "current", "open"]:
        return "done" if index < done else "current" if index == current else "open"

    return [TaskView(objective=text, status=status(index)) for index, text in enumerate(work.tasks)]


def position(tasks: Sequence[TaskView]) -> str:
    """Progress in the task list: `1/3 Write the tests`; empty without one."""
    done = sum(task.status == "done" for task in tasks)
    current = next((task.objective for task in tasks if task.status == "current"), "")
    return f"{done}/{len(tasks)} {current or 'tasks done'}" if tasks else ""


def _fields(plan_id: str, step: Step, state: StepState) -> dict[str, Any]:
    """`tasks`; and `agentAsks` (an AgentAsksView), if the agent awaits decisions."""
    found: dict[str, Any] = {}
    if tasks := tasks_of(state):
        found["tasks"] = [task.model_dump(mode="json") for task in tasks]
    if asks := _asks(state):
        found["agentAsks"] = {"agentId": agent_of_step(plan_id, step.id, state.calls), "stepIds": asks}
    return found


def _asks(state: StepState) -> list[str]:
    """The agent's calls that await approval."""
    work = state.known_part(AtWork) if state.status is Status.RUNNING else None
    return [] if work is None else list(work.asks)


def _below(plan_id: str, step: Step, state: StepState) -> Below | None:
    """What the agent asks people."""
    if not (asks := _asks(state)):
        return None
    agent = agent_of_step(plan_id, step.id, state.calls)
    return Below(agent, [Asked(plan_id=agent, step_id=call, path=call) for call in asks])


def _rows(_: str, __: Step, state: StepState) -> Iterator[str]:
    return (f"[{MARKS[task.status]}] {line(task.objective)}" for task in tasks_of(state))


def _details(plan_id: str, step: Step, state: StepState) -> list[str]:
    if step.tool != TOOL or not state.calls:
        return []
    return [f"Agent: plan show {agent_of_step(plan_id, step.id, state.calls)}"]


def _standing(_: str, __: Step, state: StepState) -> str:
    return position(tasks_of(state))


def _member(plan_id: str, step: Step, _: StepState, call: int) -> Member | None:
    return Member(agent_of_step(plan_id, step.id, call), f"{step.id}.") if step.tool == TOOL else None


IN_VIEWS = InViews(
    "agents",
    fields=_fields,
    rows=_rows,
    details=_details,
    standing=_standing,
    member=_member,
    below=_below,
    delegated=(TOOL,),
)
