"""An agent's task list as a plan: every task is a step that an agent of its own does, one after the other.

So people can look at the list before anything happens: leave tasks out, word them anew, put other steps between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plans.agents.tasks import TaskList
from plans.definition.references import literal
from plans.model import Plan, Step

TOOL = "agent"
_OF_THE_LAST = "outputSchema"
"""The argument that is about the answer to the whole request."""


def plan_of_tasks(tasks: TaskList, base: Plan, request: str, args: Mapping[str, Any]) -> Plan:
    """The plan; `args` are the arguments of its steps besides the objective."""
    steps: list[Step] = []
    shared = {name: value for name, value in args.items() if name != _OF_THE_LAST}
    for number, task in enumerate(tasks.tasks, 1):
        given = args if number == len(tasks.tasks) else shared
        step = Step(
            id=f"task_{number}",
            tool=TOOL,
            description=task.objective,
            args={"objective": literal(task.objective), **given},
            depends_on=[earlier.id for earlier in steps],  # all of them: one may be left out in review
        )
        steps.append(step)
    return base.model_copy(update={"steps": steps, "title": base.title or " ".join(request.split())[:200]})
