"""Which arguments of a step may hold references: all, except the steps of a child plan, which are a scope of their own.

`$a` in the inline steps of the tool `plan` means step `a` of the child. What the child needs of its parent is given in
`inputs`.

In inline steps of a child plan `$a` means the child, so steps move between a file and a plan unchanged. Rejected:
filling in the parent's values first, which makes each `$` an escape.
"""

from __future__ import annotations

from typing import Any

PLAN = "plan"
"""The tool that runs a plan as a step."""
STEPS = "steps"
"""Its argument with inline steps."""
_WITH_STEPS = {PLAN: STEPS}
"""By tool, the argument in which steps may stand."""


def has_steps(tool: str) -> bool:
    """Whether steps may stand in the arguments of a tool: they are written in the language of plans, as all steps."""
    return tool in _WITH_STEPS


def scanned(tool: str, args: dict[str, Any]) -> dict[str, Any]:
    """The arguments in which references of the step are looked for."""
    steps = _WITH_STEPS.get(tool)
    if steps is None or not isinstance(args.get(steps), list):
        return args
    return {name: value for name, value in args.items() if name != steps}
