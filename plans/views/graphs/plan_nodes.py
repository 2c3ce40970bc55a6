"""The nodes of a plan as written; blocks, alternatives, catches, `finally` and `undo` contain nodes of their own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from plansurvive.plans.definition.dependencies import dependencies
from plansurvive.plans.definition.scopes import CATCH, FINALLY, UNDO, path_in, plan_bodies
from plansurvive.plans.model import Plan, Step
from plansurvive.plans.views.markdown import Node

MAX_CONDITION = 60
"""Characters of a condition or a list that is shown."""


def plan_nodes(plan: Plan) -> list[Node]:
    """The outermost nodes, in reading order. Raises BadExpression."""
    main, *rest = plan_bodies(plan)
    found = [node for step in main.steps for node in _nodes(step, "")]
    followed = {name for node in found for name in node.needs}
    ends = [node.id for node in found if node.id not in followed]
    for body in rest:
        inner = [node for step in body.steps for node in _nodes(step, path_in(body, ""))]
        found.append(Node(FINALLY, "whatever happened", ends, inside=inner))
    return found


def _nodes(step: Step, before: str) -> Iterator[Node]:
    """The node of a step, and those of what follows from its failure, its end or its undoing."""
    path = f"{before}{step.id}"
    needs = [f"{before}{name}" for name in dependencies(step)]
    yield Node(path, written_text(step), needs, inside=_inside(step, path))
    for number, handler in enumerate(step.catch or [], 1):
        name = f"{path}.{CATCH}" + (f" {number}" if len(step.catch or []) > 1 else "")
        yield Node(
            name, ", ".join(handler.codes) or "any error", [path], inside=_all(handler.steps, f"{path}.{CATCH}.")
        )
    if step.finally_ is not None:
        inner = _all(step.finally_, f"{path}.{FINALLY}.")
        yield Node(f"{path}.{FINALLY}", "whatever happened", [path], inside=inner)
    if step.undo is not None:
        inner = _all(step.undo.steps or [], f"{path}.{UNDO}.")
        yield Node(f"{path}.{UNDO}", step.undo.tool or "to undo it", [path], inside=inner)


def _inside(step: Step, path: str) -> list[Node]:
    if step.steps is not None:
        return _all(step.steps, f"{path}.")
    return [
        Node(
            f"{path} {number}",
            f"if {_short(case.when)}" if case.when else "otherwise",
            [],
            inside=_all(case.steps, f"{path}."),
        )
        for number, case in enumerate(step.switch or [], 1)
    ]


def _all(steps: Sequence[Step], before: str) -> list[Node]:
    return [node for step in steps for node in _nodes(step, before)]


def written_text(step: Step) -> str:
    """What a step does, how often and until when, as it is written; not escaped."""
    parts = [step.description or step.tool or ("choose" if step.switch is not None else "block")]
    if step.for_each is not None:
        items = step.for_each.items
        listed = items if isinstance(items, str) else json.dumps(items, ensure_ascii=False)
        parts.append(f"for each of {_short(listed)}")
    if step.repeat is not None:
        parts.append(f"until {_short(step.repeat.until)}")
    if step.when is not None and step.is_block:
        parts.append(f"if {_short(step.when)}")
    return ", ".join(parts)


def _short(text: str) -> str:
    return text if len(text) <= MAX_CONDITION else f"{text[: MAX_CONDITION - 1]}…"
