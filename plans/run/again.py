"""What a new run does again, inside blocks and loops as well, and what it keeps of them.

An item is found again by its key. It keeps what it has done if the item itself is the same; a loop whose list is made
again keeps its items too, unless their steps use something else that is made again.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from plansurvive.plans.definition.dependencies import dependencies
from plansurvive.plans.definition.scopes import KEY
from plansurvive.plans.flow.batches.outcome import has_denied
from plansurvive.plans.flow.opened import Kept, Opened
from plansurvive.plans.flow.outline import Node, Outline
from plansurvive.plans.model import Step
from plansurvive.plans.run import Run
from plansurvive.plans.step_state import StepState

_Dependents = dict[tuple[str | None, str], list[Node]]
"""By what a step is inside of, and its name there: the steps that depend on it."""


class Again(NamedTuple):
    """The steps that run again: `whole` ones from their beginning, `within` only what is not done inside them."""

    whole: set[str]
    within: set[str]

    @property
    def names(self) -> set[str]:
        """All of them."""
        return self.whole | self.within


def joined(first: Again, second: Again) -> Again:
    """What runs again for either reason; where they differ about a step, the first one counts."""
    return Again(first.whole | (second.whole - first.within), first.within | (second.within - first.whole))


def unfinished(run: Run, is_done: Callable[[StepState], bool]) -> Again:
    """The steps that are not done; of blocks and loops, what is not done inside them.

    A failure that a loop tolerated or a `catch` took is done with. What a person denied asks again.
    """
    found = Again(set(), set())
    for name, node in run.outline.nodes.items():  # containers come before what is inside them
        state = run.steps[name]
        if state.closes:
            continue
        denied = state.is_denied or has_denied(state)
        if is_done(state) or not (node.parent is None or node.parent in found.within or denied):
            continue
        (found.within if name in run.opened else found.whole).add(name)
        if denied:
            found.within.update(each.id for each in run.outline.ancestors(name))
    return found


def following(run: Run, step_ids: Sequence[str], relisted: bool = False) -> Again:
    """The steps, and all that depends on them, directly or indirectly. `relisted`: only their lists are others."""
    return _following(run.outline, _dependents(run.outline), step_ids, relisted)


def unused(run: Run, names: Iterable[str], is_done: Callable[[StepState], bool]) -> list[str]:
    """Of these steps, those on whose values nothing rests that is done, neither directly nor indirectly."""
    outline, dependents = run.outline, _dependents(run.outline)
    return [
        name
        for name in names
        if not any(
            is_done(run.steps[other])
            for other in _following(outline, dependents, [name]).names
            if other != name and not run.steps[other].closes
        )
    ]


def _following(outline: Outline, dependents: _Dependents, step_ids: Sequence[str], relisted: bool = False) -> Again:
    found, to_visit = Again(set(), set()), deque(step_ids)
    (found.within if relisted else found.whole).update(step_ids)
    while to_visit:
        node = outline.nodes[to_visit.popleft()]
        name = outline.inner_name(node.id)
        for other in dependents.get((node.parent, name), ()) if node.needs_siblings else ():
            if other.id not in found.names:
                (found.within if is_only_listed(other.step, name) else found.whole).add(other.id)
                to_visit.append(other.id)
        if node.parent is not None and node.parent not in found.names:
            again = outline.nodes[node.parent].kind == "repeat"  # a round follows from the one before it
            (found.whole if again else found.within).add(node.parent)
            to_visit.append(node.parent)
    return found


def kept_of(
    run: Run, again: Again, is_done: Callable[[StepState], bool], begun_again: Callable[[Run, Step], StepState]
) -> Kept:
    """What is inside the containers that run again.

    What is done is copied; the rest restarts, and keeps the record of its calls.
    """
    kept = Kept()
    tops = [step.id for step in run.plan.steps if step.id in again.names and step.id in run.opened]
    to_visit = deque((child, top in again.whole) for top in tops for child in run.outline.nodes[top].children)
    while to_visit:
        name, anew = to_visit.popleft()
        node, state = run.outline.nodes[name], run.steps[name]
        anew = anew or name in again.whole
        if not anew and is_done(state) and name not in again.within:
            kept.steps[name] = state.model_copy(deep=True)
            if name in run.opened:
                kept.opened[name] = run.opened[name].model_copy(deep=True)
        else:
            kept.steps[name] = begun_again(run, node.step)
        if (mark := item_mark(node)) is not None:
            kept.items[name] = mark
        to_visit.extend((child, anew) for child in node.children)
    return kept


def without_inside(run: Run, names: Iterable[str]) -> None:
    """Remove from a run what is inside the containers named, which begin again."""
    gone = deque(child for name in names if name in run.opened for child in run.outline.nodes[name].children)
    outline = run.outline
    for name in names:
        run.opened.pop(name, None)
    while gone:
        name = gone.popleft()
        gone.extend(outline.nodes[name].children)
        run.steps.pop(name, None)
        run.opened.pop(name, None)


def taken(kept: Kept, outline: Outline, node: Node) -> StepState | None:
    """What an earlier run left of a step that begins now; None if nothing, or if its item is another one now."""
    state = kept.steps.pop(node.id, None)
    if state is None:
        return None
    mark = kept.items.pop(node.id, None)
    if mark is not None and mark != item_mark(node):
        kept.stale.append(node.id)
    is_stale = kept.stale and any(each.id in kept.stale for each in (node, *outline.ancestors(node.id)))
    if is_stale or not _fits(kept.opened.get(node.id), node.source):
        kept.opened.pop(node.id, None)
        return None
    return state


def _fits(opened: Opened | None, step: Step) -> bool:
    """Whether the alternatives that ran are among those of the step. Anybody may start a plan with what was kept."""
    if opened is None:
        return True
    cases, handlers = len(step.switch or []), len(step.catch or [])
    return (opened.case is None or opened.case < cases) and (opened.handler is None or opened.handler < handlers)


def item_mark(node: Node) -> str | None:
    """The hash of the item that an instance is about; None of other nodes."""
    if node.bindings is None or KEY not in node.bindings:
        return None
    item: Any = next(iter(node.bindings.values()))
    text = json.dumps(item, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def is_only_listed(step: Step, name: str) -> bool:
    """Whether a step uses another one only for the list of its items."""
    if step.for_each is None:
        return False
    bare = step.model_copy(update={"for_each": step.for_each.model_copy(update={"items": []}), "depends_on": []})
    return name not in dependencies(bare)


def _dependents(outline: Outline) -> _Dependents:
    found: _Dependents = {}
    for node in outline.nodes.values():
        if node.needs_siblings:
            for name in dependencies(node.step):
                found.setdefault((node.parent, name), []).append(node)
    return found
