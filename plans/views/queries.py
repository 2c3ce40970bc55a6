"""The workflow's queries by name, as functions of a Run.

The workflow answers its queries with them. For a plan that has ended, clients call them on the stored Run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from plansurvive.plans.execution import file_tracking
from plansurvive.plans.execution.messages import (
    BriefAsked,
    FilesAsked,
    InsideAsked,
    LogsAsked,
    Shown,
    Since,
    StepAsked,
    read,
)
from plansurvive.plans.execution.readiness import ReadinessIndex
from plansurvive.plans.run import Run
from plansurvive.plans.views import page as nested
from plansurvive.plans.views import text as display
from plansurvive.plans.views import views
from plansurvive.plans.views.progress import changed
from plansurvive.plans.views.progress import events as progress
from plansurvive.plans.views.progress.logs import logs_page
from plansurvive.plans.views.progress.pending import call_view
from plansurvive.plans.views.summary import summary_of

TEXT_STEPS = 100
"""Number of steps in the text of a big plan, unless the client asks for more."""
BRIEF = {"brief": True}
"""The argument of the query `plan` that requests the brief view; any other returns the full view."""


def brief_since(since: int, version: int) -> dict[str, Any]:
    """As BRIEF, for a client that has the plan's version as of event `since`: only the steps that may differ.

    The answer has `since` then. It has all steps and no `since` if that would not be enough.
    """
    return {**BRIEF, "since": since, "version": version}


def view(run: Run, arguments: Sequence[Any], standing: ReadinessIndex | None = None) -> dict[str, Any]:
    """The full view of the plan, or the brief view if `arguments` is BRIEF or `brief_since`."""
    if list(arguments) == [BRIEF]:
        return views.brief_view(run)
    if arguments and isinstance(asked := arguments[0], Mapping) and asked.get("brief") is True:
        message = read(BriefAsked, arguments)
        is_enough = changed.is_enough(run, message.since, message.version)
        return views.brief_view(run, message.since if is_enough else None)
    return views.plan_view(run, standing or ReadinessIndex(run))


def text(run: Run, arguments: Sequence[Any]) -> str:
    """The plan as text (format of seed 000), abridged to the number of steps requested."""
    asked = read(Shown, arguments, optional=True)
    return display.text(run, asked.limit, detailed=asked.detailed)


def stamps(run: Run, arguments: Sequence[Any]) -> dict[str, Any]:
    """File stamps (hash and size) of the files the run read or wrote, by path; of given paths or all."""
    message = read(FilesAsked, arguments, optional=True)
    return {path: stamp.model_dump(mode="json") for path, stamp in file_tracking.stamps(run, message.paths).items()}


def events(run: Run, arguments: Sequence[Any]) -> list[dict[str, Any]]:
    """Events with a number above `since`, at most `limit`."""
    message = read(Since, arguments, optional=True)
    return list(progress.events(run, message.since, message.limit))


def call(run: Run, arguments: Sequence[Any]) -> dict[str, Any]:
    """What a decision on a step would be about now, with the digest to decide about it."""
    return call_view(run, read(StepAsked, arguments).step_id)


def inside(run: Run, arguments: Sequence[Any]) -> dict[str, Any]:
    """The steps inside a block or loop, or those that fit a pattern, from number `since` on."""
    return nested.inside_page(run, read(InsideAsked, arguments), views.brief_step)


def state(run: Run) -> dict[str, Any]:
    """The complete Run as JSON data, from which it can be resumed."""
    return run.model_dump(mode="json", exclude_defaults=True)


def file(run: Run) -> dict[str, Any]:
    """The plan in the form of a plan file, without id and defaults."""
    steps = [step.model_dump(mode="json", exclude_none=True, exclude_defaults=True) for step in run.plan.steps]
    head = run.plan.model_dump(mode="json", exclude={"steps", "id"}, exclude_none=True, exclude_defaults=True)
    return {**head, "steps": steps}


def tools(run: Run) -> dict[str, Any]:
    """Specs of the tools the workers reported, by name; clients build the forms of steps from them."""
    return {name: spec.model_dump(mode="json") for name, spec in run.facts.tools.items()}


def logs(run: Run, arguments: Sequence[Any]) -> dict[str, Any]:
    """The attempts of one step, or of as many as fit into an answer, and where their output is stored."""
    page = logs_page(run, read(LogsAsked, arguments, optional=True))
    return page.model_dump(mode="json", exclude_defaults=True)


QUERIES: Mapping[str, Callable[[Run, Sequence[Any]], Any]] = MappingProxyType({
    "plan": view,
    "text": text,
    "summary": lambda run, _: summary_of(run).to_json(),
    "events": events,
    "stamps": stamps,
    "call": call,
    "state": lambda run, _: state(run),
    "file": lambda run, _: file(run),
    "tools": lambda run, _: tools(run),
    "logs": logs,
    "inside": inside,
})  # fmt: skip
"""The queries that can be answered from a Run alone."""
