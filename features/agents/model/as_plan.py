"""Converts an agent's task list to a plan: one `agent` step per task, in sequence.

People can then review the list before anything runs: delete or reword tasks, or insert other steps between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plansurvive.features.agents.model.tasks import TaskList
from plansurvive.plans.expressions.references import literal
from plansurvive.plans.model import Plan, Step

TOOL = "agent"
_OF_THE_LAST = "outputSchema"
"""The argument for the last step only: it describes the answer to the whole request."""


def plan_of_tasks(tasks: TaskList, base: Plan, request: str, args: Mapping[str, Any]) -> Plan:
    """`base` with one step per task. `args`: the arguments of every step, apart from the objective."""
    steps: list[Step] = []
    shared = {name: value for name, value in args.items() if name != _OF_THE_LAST}
    for number, task in enumerate(tasks.tasks, 1):
        own = args if number == len(tasks.tasks) else shared
        step = Step(
            id=f"task_{number}",
            tool=TOOL,
            description=task.objective,
            args={"objective": literal(task.objective), **own},
            depends_on=[earlier.id for earlier in steps],  # all, not only the previous one: it may be deleted in review
        )
        steps.append(step)
    return base.model_copy(update={"steps": steps, "title": base.title or " ".join(request.split())[:200]})
