"""What the steps of a run called and wrote, by the index of the step of the plan that they are, or are inside of.

Bounded for each step of the plan; the query `inside` has the rest, instance by instance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from plansurvive.plans.files.changes import one_of
from plansurvive.plans.model import Step
from plansurvive.plans.run import Run, StepState
from plansurvive.plans.run.undone import shown_steps
from plansurvive.plans.views.steps.counting import Census

CALLS, PATHS = 500, 5_000
"""Calls of the steps inside one step, and paths, that a view lists."""


def calls_by_index(run: Run, calls: Callable[[Run, Step], list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """The tool calls by step index, those without any left out; of a step inside with its `stepId`."""
    census, found = Census(run), dict[str, list[dict[str, Any]]]()
    for index, step in enumerate(shown_steps(run)):
        names = census.walk(step.id)
        inner = ({"stepId": name, **call} for name in names for call in calls(run, run.outline.step(name)))
        all_calls = [*calls(run, step), *islice(inner, CALLS)]
        if all_calls:
            found[str(index)] = all_calls
    return found


def by_index(run: Run, paths: Callable[[StepState], Iterable[str]]) -> dict[str, list[str]]:
    """Paths of the steps by step index, each once; those without any left out."""
    census, found = Census(run), dict[str, list[str]]()
    for index, step in enumerate(shown_steps(run)):
        inner = (path for name in census.walk(step.id) for path in paths(run.steps[name]))
        listed = dict.fromkeys([*paths(run.steps[step.id]), *islice(inner, PATHS)])
        if listed:
            found[str(index)] = list(listed)
    return found


def shared_by_index(run: Run) -> dict[str, dict[str, str]]:
    """By step index and path, whose a file may be, of those that may be another step's."""
    census, found = Census(run), dict[str, dict[str, str]]()
    for index, step in enumerate(shown_steps(run)):
        names = (name for name in (step.id, *census.walk(step.id)) if run.steps[name].shared_with)
        pairs = ((path, one_of(name, run.steps[name].shared_with)) for name in names for path in _doubtful(run, name))
        shared = dict(islice(pairs, PATHS))
        if shared or run.steps[step.id].shared_with:
            found[str(index)] = shared
    return found


def _doubtful(run: Run, step_id: str) -> list[str]:
    state = run.steps[step_id]
    return [path for path in state.shared if path in state.wrote]
