"""Whether edits inside blocks and loops that have begun can take effect: their meaning, and what has begun already."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from plansurvive.plans.definition.checks.validation import body_problems, errors
from plansurvive.plans.definition.dependencies import dependencies
from plansurvive.plans.editing.inner_edits import edited_outline, others
from plansurvive.plans.errors import InvalidPlan, Refused
from plansurvive.plans.flow.ids import inner_id
from plansurvive.plans.flow.outline import Node, Outline
from plansurvive.plans.model import Plan, Problem, Step
from plansurvive.plans.run import DONE, Run

_STRUCTURE = ("steps", "switch", "for_each", "repeat", "catch", "finally_", "undo", "output")
"""Fields of a block or loop that cannot change once it has begun, but for the steps inside it."""


def check_inside(
    run: Run, plan: Plan, overrides: Mapping[str, Step], has_begun: Callable[[str], bool]
) -> Outline | None:
    """The outline of the run as edited; None if no block or loop has begun.

    Raises Refused or InvalidPlan if the edited plan, or an edited instance, does not fit what has started.
    """
    if not run.opened:
        return None
    # 1. What has started keeps its shape, and finds the values that it needs.
    old, new = run.outline, edited_outline(run, plan, overrides)
    begun = ((was, node) for was, node in others(old, new) if was is not None and node.id in run.opened)
    known: dict[tuple[int, int], tuple[list[str], list[str]]] = {}
    for was, node in begun:
        pair = (id(was.source), id(node.source))  # the items of a loop share theirs
        if pair not in known:
            shape, after = _shape(was.source), _shape(node.source)
            reshaped = [name for name in shape if shape[name] != after[name]]
            known[pair] = (reshaped, _new_needs(was.source, node.source))
        changed, needs = known[pair]
        named = node.id in overrides or node.parent is None
        if changed and not (named and changed == ["steps" if node.kind == "block" else node.kind]):
            names = ", ".join(f"`{name.rstrip('_')}`" for name in changed)
            raise Refused(f"'{node.id}' has started, so {names} can no longer be changed", "TOO_LATE")
        _check_values(run, new, node, needs)
    # 2. The edited blocks, and edited steps that stand alone, mean something; what was wrong before does not count.
    bodies = dict.fromkeys(new.nodes[name].parent or "" for name in overrides if new.nodes[name].needs_siblings)
    blocks = [name for name in [*overrides, *(step.id for step in plan.steps)] if name in run.opened]
    blocks = [name for name in blocks if new.nodes[name].kind in ("block", "switch")]
    bodies |= dict.fromkeys(name for name in blocks if new.nodes[name].step != run.outline.step(name))
    alone = [name for name in overrides if not new.nodes[name].needs_siblings]
    found = _problems(run, new, bodies, alone)
    if found:
        before = {problem.message for problem in _problems(run, old, bodies, alone)}
        found = [problem for problem in found if problem.message not in before]
    if found:
        raise InvalidPlan(found)
    # 3. Edited instances that have not started find the values that they need now.
    for name in overrides:
        if not has_begun(name):
            _check_values(run, new, new.nodes[name], _new_needs(old.nodes[name].source, new.nodes[name].source))
    return new


def _check_values(run: Run, new: Outline, node: Node, needs: Iterable[str]) -> None:
    """Raise Refused if a step uses something from further out that is not done: nothing would wait for it."""
    for name in needs:
        if name in (node.names or {}) and node.id not in run.opened:
            continue  # a step beside it, for which it waits
        found = new.find(node.id, name)
        state = run.steps.get(found.step_id) if found is not None and found.step_id is not None else None
        if state is not None and state.status not in DONE:
            text = f"'{node.id}' cannot use '{name}', which is {state.status}: nothing inside a block waits for it"
            raise Refused(text, "TOO_EARLY")


def _new_needs(was: Step, now: Step) -> list[str]:
    before = dependencies(was)
    return [name for name in dependencies(now) if name not in before]


def _problems(run: Run, outline: Outline, blocks: Iterable[str], alone: Iterable[str]) -> list[Problem]:
    """Errors of the steps directly inside blocks, of items and rounds, and of what is inside all of them."""
    found: list[Problem] = []
    for block_id in blocks:
        nodes = [each for name in outline.nodes[block_id].children if (each := outline.nodes[name]).needs_siblings]
        steps = [node.step.model_copy(update={"id": outline.inner_name(node.id)}) for node in nodes]
        found += _of_body(run, outline, nodes[0], steps, inner_id(block_id, "")) if nodes else []
    for name in alone:
        found += _of_body(run, outline, outline.nodes[name], [outline.step(name)], "")
    return errors(found)


def _of_body(run: Run, outline: Outline, node: Node, steps: list[Step], before: str) -> list[Problem]:
    around, variables, own = {step.id: step for step in outline.plan.steps}, set[str](), set[str]()
    for each in reversed([node, *outline.ancestors(node.id)]):
        variables |= set(each.bindings or ())
        own |= {outline.inner_name(each.id)} if each.needs_siblings else set()
        for name, step_id in (each.names or {}).items():
            if step_id in outline:
                around[name] = outline.step(step_id).model_copy(update={"id": name})
    for name in own - {outline.inner_name(node.id)}:
        around.pop(name, None)
    return body_problems(outline.plan, run.facts.tools, steps, before, list(around.values()), variables, run.language)


def _shape(step: Step) -> dict[str, object]:
    """The fields of a block or loop that count once it has begun; of the steps inside it, which they are."""
    found = {name: getattr(step, name) for name in _STRUCTURE}
    found["steps"] = _ids(step.steps)
    found["finally_"] = _ids(step.finally_)
    found["switch"] = [(case.when, _ids(case.steps)) for case in step.switch or []]
    found["catch"] = [(handler.codes, _ids(handler.steps)) for handler in step.catch or []]
    return found


def _ids(steps: list[Step] | None) -> list[str] | None:
    return None if steps is None else [step.id for step in steps]
