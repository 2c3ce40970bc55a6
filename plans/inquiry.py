"""What can be asked of a Run, by the names of the workflow's queries.

The workflow answers with these functions while it can be asked; of a plan that has ended, whoever holds its Run can.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from plans import render, tracking, views
from plans.messages import FilesAsked, Shown, Since, read
from plans.run import Run
from plans.schedule import Schedule

TEXT_STEPS = 100
"""Steps of a big plan that its text lists when somebody just looks."""


def view(run: Run) -> dict[str, Any]:
    """The joined view: what was asked, with what happened."""
    return views.plan_view(run, Schedule(run))


def stamps(run: Run, arguments: Sequence[Any]) -> dict[str, Any]:
    """Hash and size of every file the run read or made, by path; of some paths when they are named."""
    message = read(FilesAsked, arguments, optional=True)
    return {path: stamp.model_dump(mode="json") for path, stamp in tracking.stamps(run, message.paths).items()}


def events(run: Run, arguments: Sequence[Any]) -> list[dict[str, Any]]:
    """Events numbered higher than `since`, at most `limit`."""
    message = read(Since, arguments, optional=True)
    return views.events(run, message.since, message.limit)


def state(run: Run) -> dict[str, Any]:
    """All there is to know of it, for another run to go on from."""
    return run.model_dump(mode="json", exclude_defaults=True)


def file(run: Run) -> dict[str, Any]:
    """The plan as it would be written by its author."""
    steps = [step.model_dump(mode="json", exclude_none=True, exclude_defaults=True) for step in run.plan.steps]
    head = run.plan.model_dump(mode="json", exclude={"steps", "id"}, exclude_none=True, exclude_defaults=True)
    return {**head, "steps": steps}


def tools(run: Run) -> dict[str, Any]:
    """The tools the plan's workers told it about, by name: what a form for a step is made from."""
    return {name: spec.model_dump(mode="json") for name, spec in run.facts.tools.items()}


QUERIES: Mapping[str, Callable[[Run, Sequence[Any]], Any]] = MappingProxyType({
    "plan": lambda run, _: view(run),
    "text": lambda run, arguments: render.text(view(run), read(Shown, arguments, optional=True).limit),
    "summary": lambda run, _: render.summary_of(view(run)),
    "events": events,
    "stamps": stamps,
    "state": lambda run, _: state(run),
    "file": lambda run, _: file(run),
    "tools": lambda run, _: tools(run),
})  # fmt: skip
"""The queries that a Run alone can answer."""
