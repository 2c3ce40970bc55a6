"""Whether it depends on content that a step is called at all: a request that is made or not made tells it as well.

`when: starts_with(secret, 'a')` on one request for each letter spells a secret out, with no value in any of them. So a
request counts as sending a value if it, or anything that it depends on, has a condition, a loop or a handler of
failures, or is a step that may fail by content. One function for a run and for the forecast of `plan check`, which know
steps in their own ways.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from plansurvive.plans.definition.scopes import bodies
from plansurvive.plans.expressions.references import INPUTS, find
from plansurvive.plans.model import Step

MAX_VISITS = 2_000
"""Steps looked at before a request; with more, it counts as depending on content."""
_BLIND = frozenset((
    "read_file", "write_file", "create_directory", "list_directory", "find_files", "delete_file", "sleep", "ask",
    "wait_for",
))  # fmt: skip
"""Tools whose success does not depend on what is in a file, an answer or an output, with arguments as written."""

Position = TypeVar("Position")


def depends_on_content(
    start: Position,
    step_of: Callable[[Position], Step],
    above: Callable[[Position], Iterable[Position]],
    needs: Callable[[Position], Iterable[Position]],
) -> bool:
    """Whether it depends on content that the step at a place is called. Positions must be hashable.

    `above`: the steps that a place is inside of; `needs`: those beside it, or beside what it is in, that it depends on.
    """
    seen, waiting = {start}, [start]
    while waiting and len(seen) <= MAX_VISITS:
        place = waiting.pop()
        outer, needed = list(above(place)), list(needs(place))
        if any(_branches(step_of(each)) for each in (place, *outer)) or any(_tells(step_of(each)) for each in needed):
            return True
        fresh = dict.fromkeys(each for each in (*outer, *needed) if each not in seen)
        seen.update(fresh)
        waiting.extend(fresh)
    return bool(waiting)


def _branches(step: Step) -> bool:
    """Whether what happens inside a step, or whether it runs, may follow from values."""
    given = (step.when, step.switch, step.for_each, step.repeat, step.catch)
    return any(each is not None for each in given)


def _tells(step: Step) -> bool:
    """Whether the end of a step may tell of content: a condition in it, or a failure."""
    if _branches(step) or any(_tells(inner) for body in bodies(step) for inner in body.steps):
        return True
    if not step.tool:
        return False
    return step.tool not in _BLIND or any(each.root != INPUTS for each in find(step.args))
