"""The hint of `plan check` that `express` would pay: many quick steps, and nothing said about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from plansurvive.plans.definition.scopes import bodies
from plansurvive.plans.model import Plan, Problem, Step, ToolSpec

CODE = "EXPRESS_PAYS"
MANY = 200
"""With more quick steps, what each costs as an activity of its own is worth a word."""


def hints(plan: Plan, tools: Mapping[str, ToolSpec]) -> list[Problem]:
    """The hint, if the plan has many quick steps that may be in segments and that nobody has said anything about."""
    if plan.express is not None:
        return []
    count = _quick(plan.steps, plan, tools)
    if count <= MANY:
        return []
    text = f"{count} of its calls are quick; with `express: true` several run in one activity (docs/express.md)"
    return [Problem(code=CODE, field="express", message=text, severity="warning")]


def _quick(steps: Iterable[Step], plan: Plan, tools: Mapping[str, ToolSpec]) -> int:
    """The calls that may be in a segment, those in loops over a written list as often as it has items."""
    found = 0
    for step in steps:
        if step.express is not None:
            continue
        inside = sum(_quick(body.steps, plan, tools) for body in bodies(step) if body.part == "")
        items = step.for_each.items if step.for_each is not None else None
        found += (inside + _may_be(step, plan, tools)) * (len(items) if isinstance(items, list) else 1)
    return found


def _may_be(step: Step, plan: Plan, tools: Mapping[str, ToolSpec]) -> bool:
    spec = tools.get(step.tool)
    if spec is None or not spec.quick or spec.durable or spec.server or step.requires_approval:
        return False
    repeatable = spec.repeatable if step.repeatable is None else step.repeatable
    return repeatable and step.queue in (None, plan.queue)
