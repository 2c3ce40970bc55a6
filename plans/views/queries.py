"""What can be asked of a Run, by the names of the workflow's queries.

The workflow answers with these functions while it can be asked; of a plan that has ended, whoever holds its Run can.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from plans.execution import file_tracking
from plans.execution.messages import FilesAsked, Shown, Since, read
from plans.execution.readiness import ReadinessIndex
from plans.run import Run
from plans.views import text as display
from plans.views import views
from plans.views.summary import summary_of

TEXT_STEPS = 100
"""Steps of a big plan that its text lists when somebody just looks."""
BRIEF = {"brief": True}
"""The argument of the query `plan` that asks for the brief view; with any other it gives the whole one."""


def view(run: Run, arguments: Sequence[Any], standing: ReadinessIndex | None = None) -> dict[str, Any]:
    """The joined view: what was asked, with what happened; in short when just that is asked for."""
    if list(arguments) == [BRIEF]:
        return views.brief_view(run)
    return views.plan_view(run, standing or ReadinessIndex(run))


def text(run: Run, arguments: Sequence[Any]) -> str:
    """The display of seed 000; of a big plan the steps that move, as many as are asked for."""
    return display.text(run, read(Shown, arguments, optional=True).limit)


def stamps(run: Run, arguments: Sequence[Any]) -> dict[str, Any]:
    """Hash and size of every file the run read or made, by path; of some paths when they are named."""
    message = read(FilesAsked, arguments, optional=True)
    return {path: stamp.model_dump(mode="json") for path, stamp in file_tracking.stamps(run, message.paths).items()}


def events(run: Run, arguments: Sequence[Any]) -> list[dict[str, Any]]:
    """Events numbered higher than `since`, at most `limit`."""
    message = read(Since, arguments, optional=True)
    return list(views.events(run, message.since, message.limit))


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
    "plan": view,
    "text": text,
    "summary": lambda run, _: summary_of(run).to_json(),
    "events": events,
    "stamps": stamps,
    "state": lambda run, _: state(run),
    "file": lambda run, _: file(run),
    "tools": lambda run, _: tools(run),
})  # fmt: skip
"""The queries that a Run alone can answer."""
