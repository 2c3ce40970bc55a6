"""Adds to the views of steps what is inside them: counts, and a few of the instances."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from plansurvive.plans.model import Step
from plansurvive.plans.run import Run
from plansurvive.plans.views.steps.counting import Census
from plansurvive.plans.views.steps.listing import (
    LISTED,
    LISTED_IN_ALL,
    item_text,
    kind_view,
    listed,
    templates,
    troubled,
)
from plansurvive.plans.views.steps.row import status_word

BriefOf = Callable[[Run, Step], dict[str, Any]]
"""The brief view of one step."""


def inside_views(run: Run, brief: BriefOf) -> Mapping[str, dict[str, Any]]:
    """Fields for the full view of a step, by id of a step of the plan that has something inside."""
    census, room = Census(run), LISTED_IN_ALL
    found: dict[str, dict[str, Any]] = {}
    for step in run.plan.steps if census.has_any else ():
        if (inside := census.inside(step.id)) is None:
            continue
        names, more = listed(census, run, step.id, min(LISTED, room))
        room -= len(names)
        found[step.id] = {"inside": inside, **_instances(census, run, names, brief, more)}
    return found


def with_inside(run: Run, steps: list[dict[str, Any]], brief: BriefOf) -> dict[str, Any]:
    """Fields of the brief view about what is inside the plan's steps; adds to `steps` what is inside each."""
    census, ids = Census(run), {view["id"] for view in steps}
    kinds = {step.id: kind_view(step) for step in run.plan.steps if step.id in ids}
    names = troubled(census, run) if census.has_any else {}
    for view in steps:
        view |= kinds.get(view["id"], {})
        if (inside := census.inside(view["id"])) is not None:
            view["inside"] = inside
            view |= _instances(census, run, names.get(view["id"], []), brief, 0)
    found: dict[str, Any] = {"templates": named} if (named := templates(run)) else {}
    return found | ({"inside": inside_counts(census, run)} if run.opened else {})


def instance_view(census: Census, run: Run, step_id: str, brief: BriefOf) -> dict[str, Any]:
    """One step inside another (a BriefStep): as any step, with its item and what is inside it."""
    step = run.outline.step(step_id)
    view = {**brief(run, step), **kind_view(step)}
    view |= {"item": item} if (item := item_text(run, step_id)) else {}
    inside = census.inside(step_id)
    return view if inside is None else view | {"inside": inside}


def _instances(census: Census, run: Run, names: list[str], brief: BriefOf, more: int) -> dict[str, Any]:
    shown = [instance_view(census, run, name, brief) for name in names]
    return ({"instances": shown} if shown else {}) | ({"moreInstances": more} if more else {})


def inside_counts(census: Census, run: Run) -> dict[str, int]:
    """The steps inside others by status, as far as they have begun; `total`: with those that are known to come."""
    states = (state for name, state in run.steps.items() if census.is_inside(name) and not state.closes)
    number = Counter(map(status_word, states))
    return {"total": max(number.total(), sum(_expected(run))), **number}


def _expected(run: Run) -> Iterator[int]:
    """How many steps the containers lead to, as far as that is known: loops by their items, blocks by their steps."""
    for name, opened in run.opened.items():
        node = run.outline.nodes.get(name)
        if node is None:
            continue
        if node.kind == "each":
            yield len(opened.items or ()) * (1 + _inner_steps(node.step))
        elif node.kind == "repeat":
            yield opened.began * (1 + _inner_steps(node.step))
        elif node.parent is None:
            yield len(node.children)


def _inner_steps(step: Step) -> int:
    """How many steps one item of a step has at least, without those of loops inside it."""
    inner = step.steps if step.steps is not None else step.switch[0].steps if step.switch else []
    return sum(1 + (_inner_steps(each) if each.for_each is None and each.repeat is None else 0) for each in inner)
