"""Edits of steps inside blocks and loops: of the block as the plan has it, or of one instance that has begun.

An edit of the plan's own block (`resize.thumb`) holds for all items that have not got to the step; one of an instance
(`resize[cat.png].thumb`) for that instance alone. Nothing here changes the run.

Rejected: copying the block into each item at its start, with which the run grows by steps times items and no edit
reaches all items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from pydantic import ValidationError

from plansurvive.plans.definition.checks.names import size_problem
from plansurvive.plans.definition.scopes import CATCH, FINALLY, UNDO
from plansurvive.plans.errors import InvalidPlan, Refused
from plansurvive.plans.flow.ids import inner_id
from plansurvive.plans.flow.outline import Node, Outline
from plansurvive.plans.model import Plan, Problem, Step
from plansurvive.plans.run import Run, Status

Data = dict[str, Any]


class Effect(NamedTuple):
    """What an edited plan means for the steps that have begun."""

    pinned: dict[str, Step]
    """Steps that have begun, as they were: an edit of the plan does not reach them."""
    changed: dict[str, Step]
    """Steps inside that have not begun and are others now, or new."""


def is_inner(run: Run, step_id: str) -> bool:
    """Whether an id names an instance, or a step inside a block or loop that has begun."""
    node = run.outline.nodes.get(step_id)
    return node is not None and node.parent is not None


def require_open(run: Run, step_id: str) -> None:
    """Raise Refused if something around a step has ended: whatever is edited there would never run.

    So for a batch of a loop with `mode: plans`: what it runs is made from the loop when it begins.
    """
    outline, inside = run.outline, step_id
    if (loop := outline.loop_of(step_id)) is not None:
        raise Refused(
            f"'{step_id}' is a batch: its items run in a child plan. Edit a step of '{loop.id}' for batches that have"
            f" not started, or a step of that child plan (`plan show ID '{step_id}'` names it)",
            "IN_CHILD_PLAN",
        )
    for node in outline.ancestors(step_id):
        state, opened = run.steps[node.id], run.opened.get(node.id)
        closes = inside in (inner_id(node.id, CATCH), inner_id(node.id, FINALLY))
        if state.status is not Status.RUNNING or (opened is not None and opened.body is not None and not closes):
            ended = state.status if state.status is not Status.RUNNING else "done with its steps"
            raise Refused(f"'{node.id}' is {ended}; what is inside it can no longer be edited", "TOO_LATE")
        inside = node.id


def siblings(run: Run, step_id: str) -> list[Node]:
    """The steps beside a step, itself included."""
    outline = run.outline
    node = outline.nodes.get(step_id)
    if node is None or node.parent is None:
        return [outline.nodes[step.id] for step in run.plan.steps]
    if not node.needs_siblings:
        return []
    return [each for name in outline.nodes[node.parent].children if (each := outline.nodes[name]).needs_siblings]


def place_of(top: Data, path: list[str]) -> tuple[list[Data], int] | None:
    """The list of a step inside a step of a plan file, by its path below that, and its index; None if there is none."""
    row, found, rest = top, None, list(path)
    while rest:
        part = rest.pop(0)
        found = place_in(row, part)
        if found is None and rest and part in (CATCH, FINALLY, UNDO):
            found = _among(_lists(row, part), rest.pop(0))
        if found is None:
            return None
        row = found[0][found[1]]
    return found


def place_in(block: Data, name: str) -> tuple[list[Data], int] | None:
    """The list with one of the steps of a block, or of a case of a `switch`, and its index."""
    return _among(_lists(block), name)


def override_of(step_id: str, data: Data) -> Step:
    """An edited instance as a Step. Raises InvalidPlan if it is none; `inner_checks` judges its meaning."""
    try:
        step = Step.model_validate({**data, "id": "step"})
    except ValidationError as error:
        found = [
            Problem(code="PLAN_SCHEMA", step_id=step_id, field=".".join(map(str, each["loc"])), message=each["msg"])
            for each in error.errors(include_url=False)[:20]
        ]
        raise InvalidPlan(found) from error
    if (too_large := size_problem(Plan(steps=[step]))) is not None:
        raise InvalidPlan([too_large])
    return step


def edited_outline(run: Run, plan: Plan, overrides: Mapping[str, Step]) -> Outline:
    """The outline of the run with an edited plan and edited instances."""
    return Outline(plan, run.opened, {**run.pins, **run.overrides, **overrides})


def effect_of(
    run: Run, plan: Plan, overrides: Mapping[str, Step], drawn: Outline | None, has_begun: Callable[[str], bool]
) -> Effect:
    """What the edited plan, and the edited instances, mean for the steps inside blocks and loops.

    `drawn`: the outline of the run with them, if there is one already: of a big loop it takes a second to make.
    """
    if not run.opened:
        return Effect({}, {})
    old, new = run.outline, drawn or edited_outline(run, plan, overrides)
    pinned, changed, bare = dict[str, Step](), dict[str, Step](), dict[int, Step]()
    for was, node in others(old, new):
        if node.parent is None:
            continue
        if was is None or not has_begun(node.id):
            changed[node.id] = node.step
        elif node.kind == "call" and node.id not in overrides:
            pinned[node.id] = bare.setdefault(id(was.source), _bare(was.source))  # one for all items
    return Effect(pinned, changed)


def others(old: Outline, new: Outline) -> Iterator[tuple[Node | None, Node]]:
    """The nodes that are new or differ, with what they were. Steps that many nodes share are compared once."""
    known: dict[tuple[int, int], bool] = {}
    for name, node in new.nodes.items():
        was = old.nodes.get(name)
        if was is None:
            yield None, node
        elif was.source is not node.source:
            pair = (id(was.source), id(node.source))
            if pair not in known:
                known[pair] = _bare(was.source) != _bare(node.source)
            if known[pair]:
                yield was, node


def _bare(step: Step) -> Step:
    return step.model_copy(update={"id": "step"})


def _lists(row: Data, part: str = "") -> list[list[Data]]:
    """The lists of steps of a block and of the cases of a `switch`; or those of its `catch`, `finally` or `undo`."""
    if part == FINALLY:
        found = [row.get(FINALLY)]
    elif part == UNDO:
        found = [(row.get(UNDO) or {}).get("steps")]
    elif part == CATCH:
        found = [handler.get("steps") for handler in row.get(CATCH) or []]
    else:
        found = [row.get("steps"), *(case.get("steps") for case in row.get("switch") or [])]
    return [each for each in found if isinstance(each, list)]


def _among(lists: list[list[Data]], name: str) -> tuple[list[Data], int] | None:
    for rows in lists:
        for index, row in enumerate(rows):
            if isinstance(row, dict) and row.get("id") == name:
                return rows, index
    return None
