"""Progress of a step that an agent works on, from the agent's task list: the message, the state and the view.

Tasks are done in order, so the list is sent once and afterwards only the number of tasks that are done. The next one is
current while the step is running.
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
"""Maximum length of an objective in a message, in bytes: fifty of them must fit."""
MARKS = {"done": "✓", "current": ">", "open": " "}


def progress_of(tasks: TaskList | None, is_new: bool) -> dict[str, Any]:
    """Fields of the AgentProgress message; objectives are included only if the list `is_new`."""
    if tasks is None:
        return {}
    objectives = [_cut(task.objective) for task in tasks.tasks] if is_new else None
    return {"done": len(tasks.tasks) - tasks.remaining} | ({"tasks": objectives} if objectives else {})


def note_progress(run: Run, message: AgentProgress, now: datetime) -> None:
    """Apply a progress message to its step, and log it. Ignored if the step was deleted in the meantime."""
    state = run.steps.get(message.step_id)
    if state is None:
        return
    state.tasks = state.tasks if message.tasks is None else message.tasks
    state.tasks_done = state.tasks_done if message.done is None else min(message.done, len(state.tasks))
    percent = 100 * state.tasks_done // len(state.tasks) if state.tasks else None
    if message.line:
        run.note(LogKind.AGENT, message.line, now, message.step_id, progress=percent)


def tasks_of(state: StepState) -> list[TaskView]:
    """The step's task list with the status of each task; empty if it has none."""
    current = state.tasks_done if state.status is Status.RUNNING else -1

    def status(index: int) -> Literal["done", "current", "open"]:
        return "done" if index < state.tasks_done else "current" if index == current else "open"

    return [TaskView(objective=text, status=status(index)) for index, text in enumerate(state.tasks)]


def position(tasks: Sequence[TaskView]) -> str:
    """Progress in the task list: `1/3 Write the tests`; empty without one."""
    done = sum(task.status == "done" for task in tasks)
    current = next((task.objective for task in tasks if task.status == "current"), "")
    return f"{done}/{len(tasks)} {current or 'tasks done'}" if tasks else ""


def _cut(text: str) -> str:
    data = text.encode(errors="replace")
    return text if len(data) <= OBJECTIVE_BYTES else data[: OBJECTIVE_BYTES - 3].decode(errors="ignore") + "…"
