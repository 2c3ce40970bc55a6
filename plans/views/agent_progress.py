"""The task list of the agent that does a step, as the progress of that step: what is told, kept and shown of it.

Tasks are done in order, so the list is told once and from then on how many are done; the one after these is current
as long as the step runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from plans.agents.tasks import TaskList
from plans.execution.messages import AgentProgress
from plans.log import LogKind
from plans.run import Run, Status, StepState
from plans.views.models import TaskView

OBJECTIVE_BYTES = 140
"""Of each objective that is told: fifty of them must fit into a message."""
MARKS = {"done": "✓", "current": ">", "open": " "}


def progress_of(tasks: TaskList | None, is_new: bool) -> dict[str, Any]:
    """What an agent's plan is told of its list, as fields of the message."""
    if tasks is None:
        return {}
    objectives = [_cut(task.objective) for task in tasks.tasks] if is_new else None
    return {"done": len(tasks.tasks) - tasks.remaining} | ({"tasks": objectives} if objectives else {})


def note_progress(run: Run, told: AgentProgress, now: datetime) -> None:
    """Take in what the agent of a step told; of a step that is not there any more nothing is kept."""
    state = run.steps.get(told.step_id)
    if state is None:
        return
    state.tasks = state.tasks if told.tasks is None else told.tasks
    state.tasks_done = state.tasks_done if told.done is None else min(told.done, len(state.tasks))
    percent = 100 * state.tasks_done // len(state.tasks) if state.tasks else None
    run.note(LogKind.AGENT, told.line, now, told.step_id, progress=percent)


def tasks_of(state: StepState) -> list[TaskView]:
    """The list with the status of each task; empty when the step has none."""
    current = state.tasks_done if state.status is Status.RUNNING else -1

    def status(index: int) -> Literal["done", "current", "open"]:
        return "done" if index < state.tasks_done else "current" if index == current else "open"

    return [TaskView(objective=text, status=status(index)) for index, text in enumerate(state.tasks)]


def position(tasks: Sequence[TaskView]) -> str:
    """Where the agent of a step stands by its task list: `1/3 Write the tests`; empty without one."""
    done = sum(task.status == "done" for task in tasks)
    current = next((task.objective for task in tasks if task.status == "current"), "")
    return f"{done}/{len(tasks)} {current or 'tasks done'}" if tasks else ""


def _cut(text: str) -> str:
    data = text.encode(errors="replace")
    return text if len(data) <= OBJECTIVE_BYTES else data[: OBJECTIVE_BYTES - 3].decode(errors="ignore") + "…"
