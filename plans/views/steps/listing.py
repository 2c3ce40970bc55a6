"""Which of the steps inside blocks and loops a view lists one by one: those that need a look, then those that move.

Never more than a given number, whatever the size of the loop; the others are counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from plansurvive.plans.children.asked import asked_below
from plansurvive.plans.definition.scopes import INDEX, KEY, UNDO, walk_step
from plansurvive.plans.execution.tool_history import shorten
from plansurvive.plans.flow.ids import inner_id
from plansurvive.plans.flow.outline import kind_of
from plansurvive.plans.model import Step
from plansurvive.plans.run import Run, Status
from plansurvive.plans.views.steps.abridged import foremost, rank
from plansurvive.plans.views.steps.counting import Census

LISTED = 50
"""Steps inside one step of the plan that the full view lists."""
LISTED_IN_ALL = 500
"""Steps inside others that one full view lists."""
TROUBLED = 30
"""Failed steps, and as many that await something, that the brief view lists of a whole plan."""
NESTED_TEMPLATES = 1_000
"""Steps inside blocks, as the plan has them, that the brief view names."""
ITEM_CHARACTERS = 200


def listed(census: Census, run: Run, step_id: str, limit: int) -> tuple[list[str], int]:
    """At most `limit` of the steps inside a step, in order, and the number of the others.

    First what awaits something, what runs and what failed, as `plans.views.steps.abridged` has it.
    """
    names = list(census.walk(step_id))
    states = [run.steps[name] for name in names]
    if len(names) <= limit:
        return names, 0
    ranks = [rank(state.status, state.awaiting is not None, state.ended) for state in states]
    found = [names[index] for index in foremost(ranks, limit + 1)]
    return found, len(names) - len(found)


def troubled(census: Census, run: Run) -> dict[str, list[str]]:
    """The steps inside others that failed or await something, or whose agents and plans do; a few of each.

    By the step of the plan that they are in.
    """
    found: dict[str, list[str]] = {}
    for name in [*islice(_awaiting(census, run), TROUBLED), *islice(_failed(census, run), TROUBLED)]:
        found.setdefault(root_of(run, name), []).append(name)
    return found


def root_of(run: Run, step_id: str) -> str:
    """The step of the plan that a step is, or is inside of."""
    if step_id not in run.outline:
        return step_id
    return next((node.id for node in run.outline.ancestors(step_id) if node.parent is None), step_id)


def is_cause(census: Census, run: Run, step_id: str) -> bool:
    """Whether a step failed by itself, not only because one inside it did."""
    return is_cause_of(run, census.children(step_id), step_id)


def is_cause_of(run: Run, children: Sequence[str], step_id: str) -> bool:
    """As `is_cause`, given the steps inside it."""
    failed = run.steps[step_id].status is Status.FAILED
    return failed and not any(run.steps[name].status is Status.FAILED for name in children)


def item_text(run: Run, step_id: str) -> str:
    """The items of the loops around a step, outermost first: `cat.png, item 3 of 20`; empty outside of loops."""
    if not run.opened or step_id not in run.outline:
        return ""
    found = []
    for node in [run.outline.nodes[step_id], *run.outline.ancestors(step_id)]:
        if node.parent is None or node.bindings is None or INDEX not in node.bindings:
            continue
        rule, opened = run.outline.nodes[node.parent].step.for_each, run.opened.get(node.parent)
        item = node.bindings.get(rule.as_) if rule is not None else None
        text = shorten(item)[:ITEM_CHARACTERS] if item is not None else str(node.bindings.get(KEY, ""))
        total = len(opened.items or ()) if opened is not None else 0
        found.append(f"{text}, item {node.bindings[INDEX] + 1} of {total}")
    return "; ".join(reversed(found))


def templates(run: Run) -> list[dict[str, Any]]:
    """The steps inside blocks and loops, and the undos, as the plan has them, by their paths: what each calls."""
    if run.literal:
        return []
    found = (
        {"id": path, "tool": each.tool, "description": each.description, **kind_view(each)}
        for step in run.plan.steps
        if step.is_block or step.catch or step.finally_ or step.undo
        for outer, inner in walk_step(step)
        for path, each in ((outer, inner), *_undo_of(outer, inner))
        if path != step.id
    )
    return list(islice(found, NESTED_TEMPLATES))


def _undo_of(path: str, step: Step) -> Iterator[tuple[str, Step]]:
    """What undoes a step, as a step, if the plan says it; see `Outline.undo`."""
    if step.undo is not None:
        rule, text = step.undo, f"undo {path}"
        undo: dict[str, Any] = {"id": UNDO, "tool": rule.tool or "", "steps": rule.steps, "description": text}
        yield inner_id(path, UNDO), Step.model_construct(**undo)


def kind_view(step: Any) -> dict[str, str]:
    """What a step is if it is not a call, for a view of it."""
    kind = kind_of(step)
    return {} if kind == "call" else {"kind": kind}


def _awaiting(census: Census, run: Run) -> Iterator[str]:
    waits = (name for name, state in run.steps.items() if state.awaiting or state.child or state.parts)
    return (name for name in waits if census.is_inside(name) and (run.steps[name].awaiting or _asks_below(run, name)))


def _asks_below(run: Run, step_id: str) -> bool:
    return any(asked_below(run, [step_id]))


def _failed(census: Census, run: Run) -> Iterator[str]:
    failed = (name for name, state in run.steps.items() if state.status is Status.FAILED and census.is_inside(name))
    return (name for name in failed if is_cause(census, run, name))
