"""Tools that only seem to work: with the name, arguments and approvals of the real one, and a function of the test."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from plansurvive.activities.tools.registry import builtin_tools
from plansurvive.activities.tools.tool import Tool
from plansurvive.plans.errors import PlanError


@dataclass
class Fake:
    """A tool that takes the place of another, and the calls that it got, in order."""

    tool: Tool
    calls: list[dict[str, Any]] = field(default_factory=list)


def fake(real: str | Tool, answer: Any) -> Fake:
    """A fake of a tool: it returns `answer`, or what `answer(**arguments)` returns or raises.

    `real`: the name of a built-in tool, or a tool of yours. Arguments are checked as the real tool checks them, and the
    step needs approval where the real one does. To fail as a tool does, raise ToolError. Raises PlanError UNKNOWN_TOOL,
    and for `sleep`, `ask`, `wait_for`, `agent` and `plan`, which the workflow carries out itself.
    """
    known = builtin_tools()
    if isinstance(real, str) and real not in known:
        raise PlanError(f"there is no built-in tool '{real}'; pass your own tool itself", "UNKNOWN_TOOL")
    tool = known[real] if isinstance(real, str) else real
    if tool.spec.durable:
        raise PlanError(f"'{tool.spec.name}' is carried out by the workflow and has no function", "UNKNOWN_TOOL")
    made = Fake(tool)

    def call(**arguments: Any) -> Any:
        given = {name: value for name, value in arguments.items() if name != tool.context_parameter}
        made.calls.append(given)
        return answer(**given) if callable(answer) else answer

    made.tool = replace(tool, function=call)
    return made
