"""Progress of a step that works through a task list, for its views.

Tasks are done in order, so only the number of those that are done is known. The next one is current while the step is
running.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from plansurvive.plans.model import Step
from plansurvive.plans.run import Status, StepState
from plansurvive.plans.views.models import TaskView

MARKS = {"done": "✓", "current": ">", "open": " "}


def notes_of(step: Step, state: StepState) -> str:
    """The notes of a step: the plan's own first, then what its agent said."""
    return "; ".join(filter(None, [step.notes, state.notes]))


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
