"""Whether the edited steps inside blocks and loops that a run takes over from an earlier one can be worked with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from plansurvive.plans.definition.checks.names import size_problem
from plansurvive.plans.definition.checks.validation import calls_of
from plansurvive.plans.definition.scopes import walk_step
from plansurvive.plans.flow.ids import MAX_ID, template_of
from plansurvive.plans.model import MAX_STEPS, Plan, Problem, Step, ToolSpec
from plansurvive.plans.run import Run

MAX_TAKEN = 4 * MAX_STEPS
"""At most so many steps inside blocks and loops may differ from the plan."""


def tool_problems(own: Mapping[str, Step], tools: Mapping[str, ToolSpec]) -> list[Problem]:
    """The first call of a tool that no worker has."""
    for name, step in own.items():
        for _, each in walk_step(step):
            for call in calls_of(each):
                if call.tool not in tools:
                    text = f"no worker of the plan has the tool '{call.tool}', which an edit of this step uses"
                    return [Problem(code="UNKNOWN_TOOL", step_id=name, field="tool", message=text)]
    return []


def problems_of(run: Run) -> Iterator[str]:
    """What no edit can have led to."""
    tops = {step.id for step in run.plan.steps}
    for where, found in (("overrides", run.overrides), ("pins", run.pins)):
        if len(found) > MAX_TAKEN:
            yield f"run.{where}: more than {MAX_TAKEN} steps"
            return
        for name, step in found.items():
            if len(name) > MAX_ID or name in tops or template_of(name).split(".")[0] not in tops:
                yield f"run.{where}.{name[:100]}: names no step inside a block or loop of the plan"
            elif not step.tool and size_problem(Plan(steps=[step])) is not None:
                yield f"run.{where}.{name[:100]}: has too many steps, or steps inside each other too deep"
