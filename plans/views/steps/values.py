"""The value of a block or loop, put together for a view of it as long as it is small."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from plansurvive.plans.flow.values import Composer
from plansurvive.plans.run import Result, Run
from plansurvive.plans.views.steps.counting import Census

COMPOSED = 1_000
"""Steps inside a step from which on its value is not put together for views: the instances have theirs."""


def value_of(run: Run, step_id: str, result: Result) -> tuple[Any, bool]:
    """The value of a step, and whether that is all of it."""
    if not result.composed:
        return result.value, result.large is None
    if sum(1 for _ in islice(Census(run).walk(step_id), COMPOSED + 1)) > COMPOSED:
        return None, False
    found = Composer(run.outline, run.opened, run.steps).composed(step_id)
    return found.value, not found.parts


def result_with_value(run: Run, step_id: str, view: dict[str, Any]) -> dict[str, Any]:
    """The view of a result with the value of a block or loop; `cut` if there is no room for it."""
    result = run.steps[step_id].result
    if result is None or not result.composed:
        return view
    value, is_whole = value_of(run, step_id, result)
    if is_whole and _is_small(value):
        return {**view, "value": value}
    return {**view, "cut": True}


def _is_small(value: Any, limit: int = 100_000) -> bool:
    """Whether the texts of a value are few, looked at no further than that."""
    for size in _sizes(value):
        limit -= size
        if limit < 0:
            return False
    return True


def _sizes(value: Any) -> Iterator[int]:
    stack = [value]
    while stack:
        found = stack.pop()
        yield len(found) + 1 if isinstance(found, str) else 8
        if isinstance(found, dict):
            stack += [part for pair in found.items() for part in pair]
        elif isinstance(found, list):
            stack += found
