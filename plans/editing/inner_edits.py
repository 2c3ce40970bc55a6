"""Edits of steps inside blocks and loops: of the block as the plan has it, or of one instance that has begun.

An edit of the plan's own block (`resize.thumb`) holds for all items that have not got to the step; one of an instance
(`resize[cat.png].thumb`) for that instance alone. Nothing here changes the run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from pydantic import ValidationError

from plans.definition.scopes import CATCH, FINALLY, UNDO, bodies
from plans.definition.validation import call_problems, errors
from plans.errors import InvalidPlan, Refused
from plans.flow.ids import inner_id
from plans.flow.outline import Node, Outline
from plans.model import Plan, Problem, Step
from plans.run import Run

Data = dict[str, Any]


class Effect(NamedTuple):
    """What an edited plan means for the steps that have begun."""

    pinned: dict[str, Step]
    """Steps that have begun, as they were: an edit of the plan does not reach them."""
    changed: list[str]
    """Steps inside that have not begun and are others now, or new."""


def is_inner(run: Run, step_id: str) -> bool:
    """Whether an id names an instance, or a step inside a block or loop that has begun."""
    node = run.outline.nodes.get(step_id)
    return node is not None and node.parent is not None


def row_of(top: Data, path: list[str]) -> Data | None:
    """The data of a step inside a step of a plan file, by its path below that; None if there is none."""
    row: Data | None = top
    rest = list(path)
    while rest and row is not None:
        part = rest.pop(0)
        found = next((each for each in _rows(row) if each.get("id") == part), None)
        if found is None and rest and part in (CATCH, FINALLY, UNDO):
            name = rest.pop(0)
            found = next((each for each in _rows_of_part(row, part) if each.get("id") == name), None)
        row = found
    return row


def list_of(block: Data, run: Run, block_id: str) -> list[Data]:
    """The list of a block's steps, which the caller may modify. Raises Refused if it has none of its own."""
    opened = run.opened.get(block_id)
    if block.get("switch") is not None and opened is not None and opened.case is not None:
        found: list[Data] = block["switch"][opened.case]["steps"]
        return found
    if block.get("steps") is None:
        raise Refused(f"'{block_id}' has no steps of its own; edit its items or rounds", "NOT_A_BLOCK")
    steps: list[Data] = block["steps"]
    return steps


def override_of(run: Run, step_id: str, data: Data) -> Step:
    """An edited instance as a Step. Raises InvalidPlan."""
    node, local = run.outline.nodes[step_id], run.outline.step(step_id)
    try:
        step = Step.model_validate({**data, "id": "step"})
    except ValidationError as error:
        found = [
            Problem(code="PLAN_SCHEMA", step_id=step_id, field=".".join(map(str, each["loc"])), message=each["msg"])
            for each in error.errors(include_url=False)[:20]
        ]
        raise InvalidPlan(found) from error
    usable = _usable(run, node)
    wrong = _problems(run, step, step_id, usable)
    before = [problem.message for problem in _problems(run, local, step_id, usable)]
    new = [problem for problem in errors(wrong) if problem.message not in before]
    if new:
        raise InvalidPlan(new)
    return step


def effect_of(run: Run, plan: Plan, overrides: dict[str, Step], has_begun: Callable[[str], bool]) -> Effect:
    """What the edited plan, and the edited instances, mean for the steps inside blocks and loops."""
    if not run.opened:
        return Effect({}, [])
    old, new = run.outline, Outline(plan, run.opened, {**run.overrides, **overrides})
    pinned, changed = dict[str, Step](), list[str]()
    for name, node in new.nodes.items():
        if node.parent is None:
            continue
        was = old.nodes.get(name)
        if was is None or (was.step != node.step and not has_begun(name)):
            changed.append(name)
        elif was.step != node.step and node.kind == "call" and name not in overrides:
            pinned[name] = was.step.model_copy(update={"id": "step"})
    return Effect(pinned, changed)


def _problems(run: Run, step: Step, step_id: str, usable: set[str]) -> list[Problem]:
    """Problems of the calls in a step, those inside it included."""
    own = [] if not step.tool else call_problems(step, run.facts.tools, usable, set(run.plan.inputs))
    found = [problem.model_copy(update={"step_id": step_id}) for problem in own]
    for body in bodies(step):
        names = usable | body.names()
        for each in body.steps:
            found += _problems(run, each, inner_id(step_id, each.id), names)
    return found


def _usable(run: Run, node: Node) -> set[str]:
    """Every name that means something where a step stands."""
    outline = run.outline
    found = {name for name, each in outline.nodes.items() if each.parent is None}
    for each in (node, *outline.ancestors(node.id)):
        found |= set(each.names or ()) | set(each.bindings or ())
    return found


def _rows(row: Data) -> list[Data]:
    found = list(row.get("steps") or [])
    for case in row.get("switch") or []:
        found += case.get("steps") or []
    return found


def _rows_of_part(row: Data, part: str) -> list[Data]:
    if part == FINALLY:
        return list(row.get(FINALLY) or [])
    if part == UNDO:
        return list((row.get(UNDO) or {}).get("steps") or [])
    return [each for handler in row.get(CATCH) or [] for each in handler.get("steps") or []]
