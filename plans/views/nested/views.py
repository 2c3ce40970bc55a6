"""Adds to the views of steps what is inside them: counts, and a few of the instances."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from plans.model import Step
from plans.run import Run
from plans.views.nested.counting import Census
from plans.views.nested.listing import LISTED, LISTED_IN_ALL, item_text, kind_view, listed, templates, troubled

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
    census, kinds = Census(run), {step.id: kind_view(step) for step in run.plan.steps}
    names = troubled(census, run) if census.has_any else {}
    for view in steps:
        view |= kinds.get(view["id"], {})
        if (inside := census.inside(view["id"])) is not None:
            view["inside"] = inside
            view |= _instances(census, run, names.get(view["id"], []), brief, 0)
    found: dict[str, Any] = {"templates": named} if (named := templates(run)) else {}
    return found | ({"inside": sum(_known(run))} if run.opened else {})


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


def _known(run: Run) -> Iterator[int]:
    """How many steps are inside each container, those known to come included."""
    for name, opened in run.opened.items():
        begun = len(run.outline.nodes[name].children) if name in run.outline else 0
        yield max(begun, len(opened.items or ()))
