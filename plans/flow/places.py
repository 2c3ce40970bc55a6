"""The places of loops with `maxParallel`: which items have one, and which steps wait until their item gets one.

Rules
- An item has a place from its beginning, and keeps it while something in it runs, is tried again, rests between two
  rounds, is recovered by the LLM, or is about to start. A running agent or child plan counts, whomever it awaits.
- It leaves its place when all that is left of it awaits a decision, an answer or an event: others begin meanwhile.
- What is ready again in it then waits for a place, before items that have not begun; of several, the first of the list.
- In nested loops a step needs a place in each of them. It takes all at once, or none, so none wait for each other.

A loop without `maxParallel` has no places: the plan's own `maxParallel` limits its steps. Nothing here changes a run.
Rejected: that an item keeps its place while it awaits a person. Nobody could decide about more than a few at a time.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from plansurvive.plans.definition.scopes import walk_step
from plansurvive.plans.flow.batches.split import is_split, window_of
from plansurvive.plans.flow.outline import Outline
from plansurvive.plans.model import ForEach, Step


class Item(NamedTuple):
    """An item that a step is, or is in."""

    loop: str
    id: str


def places_of(rule: ForEach | None) -> int | None:
    """How many items, or batches of them, may be in progress; None: the loop does not say."""
    if rule is None or rule.max_parallel is None:
        return None
    return window_of(rule, rule.max_parallel).plans if is_split(rule) else rule.max_parallel


def any_places(steps: list[Step]) -> bool:
    """Whether a loop is among these steps, or in them, whose items take places."""
    return any(places_of(each.for_each) is not None for step in steps for _, each in walk_step(step))


class Places:
    """The places of one run."""

    def __init__(self, outline: Outline, position: Callable[[str], int], before: Places | None = None) -> None:
        """`position`: of two steps beside each other, the one that comes first has the smaller one.

        `before`: the places until now, of a plan that has been edited.
        """
        self._outline, self._position = outline, position
        self._around: dict[str, tuple[bool, list[Item]]] = {}
        """By container, whether its items have places, and the items that it is, or is in: thousands share one."""
        self._held: dict[str, set[str]] = {}
        self._active: set[str] = set()
        self._at_work: Counter[str] = Counter()
        """By item, how many steps in it keep its place."""
        self._leaving: dict[str, Item] = {}
        """Items in which no step does any more. They have their place until `admit`: one may follow in this turn."""
        self._queued: set[str] = set()
        self._fresh: dict[str, None] = {}
        """Steps that have queued since the last `admit`."""
        self._lines: dict[str, list[tuple[tuple[int, ...], str]]] = {}
        """By loop that has no place for them, the steps that wait: heaps, in the order of the list."""
        for loop, items in before._held.items() if before is not None else ():
            for name in [name for name in items if name in outline]:
                self._held.setdefault(loop, set()).add(name)
                self._leaving[name] = Item(loop, name)

    def has(self, step_id: str) -> bool:
        """Whether a step may start: each item that it is in has a place."""
        return all(item.id in self._held.get(item.loop, ()) for item in self._items(step_id))

    def room(self, loop: str) -> bool:
        """Whether a further item of a loop may take a place, in those around it as well."""
        return self._is_free(loop) and all(
            item.id in self._held.get(item.loop, ()) or self._is_free(item.loop) for item in self._items(loop)
        )

    def begin(self, step_id: str) -> None:
        """An item begins, or a step that was ready before this was built: it has its places."""
        for item in self._items(step_id):
            self._held.setdefault(item.loop, set()).add(item.id)
            if not self._at_work[item.id]:
                self._leaving[item.id] = item

    def mark(self, step_id: str, active: bool) -> None:
        """Note whether a step keeps the places of the items that it is in."""
        if active == (step_id in self._active):
            return
        (self._active.add if active else self._active.discard)(step_id)
        for item in self._items(step_id):
            self._at_work[item.id] += 1 if active else -1
            if active:
                self._held.setdefault(item.loop, set()).add(item.id)
                self._leaving.pop(item.id, None)
            elif not self._at_work[item.id]:
                self._leaving[item.id] = item

    def queue(self, step_id: str) -> None:
        """A step waits for its places."""
        if step_id not in self._queued:
            self._queued.add(step_id)
            self._fresh[step_id] = None

    def forget(self, step_id: str) -> None:
        """A step waits no longer."""
        self._queued.discard(step_id)

    def admit(self) -> Iterator[str]:
        """The steps that get their places now, one after the other; each is to be marked before the next one."""
        if not self._fresh and not any(self._lines.values()):  # none waits: the common case, once an item
            for item in self._leaving.values():
                self._held[item.loop].discard(item.id)
            self._leaving.clear()
            return
        loops = dict[str, None]()
        for step_id in [*self._fresh]:
            del self._fresh[step_id]
            if step_id in self._queued:
                loops[self._wait(step_id)] = None
        # The innermost first: what follows there keeps the places further out.
        depths = {loop: self._depth(loop) for loop in (*loops, *(item.loop for item in self._leaving.values()))}
        for depth in sorted(set(depths.values()), reverse=True):
            for item in [item for item in self._leaving.values() if depths[item.loop] == depth]:
                del self._leaving[item.id]
                self._held[item.loop].discard(item.id)
                loops[item.loop] = None
            for loop in [loop for loop in loops if depths[loop] == depth]:
                yield from self._fill(loop)

    def _fill(self, loop: str) -> Iterator[str]:
        line = self._lines.get(loop, [])
        while line:
            step_id = line[0][1]
            if step_id in self._queued:
                own = next(item for item in self._items(step_id) if item.loop == loop)
                if own.id not in self._held.get(loop, ()) and not self._is_free(loop):
                    return
            heapq.heappop(line)
            if step_id not in self._queued:
                continue
            full = self._full(step_id)
            if full is not None:
                self._push(full, step_id)
                continue
            self._queued.discard(step_id)
            yield step_id

    def _wait(self, step_id: str) -> str:
        """Have a step wait in the line of a loop: one that has no place for it, if there is one. Returns the loop."""
        missing = [item.loop for item in self._items(step_id) if item.id not in self._held.get(item.loop, ())]
        loop = self._full(step_id) or (missing or [self._items(step_id)[0].loop])[-1]
        self._push(loop, step_id)
        return loop

    def _push(self, loop: str, step_id: str) -> None:
        heapq.heappush(self._lines.setdefault(loop, []), (self._order(step_id), step_id))

    def _full(self, step_id: str) -> str | None:
        """The innermost loop that has no place for a step; None if all have."""
        for item in self._items(step_id):
            if item.id not in self._held.get(item.loop, ()) and not self._is_free(item.loop):
                return item.loop
        return None

    def _is_free(self, loop: str) -> bool:
        most = places_of(self._outline.nodes[loop].source.for_each)
        return most is None or len(self._held.get(loop, ())) < most

    def _items(self, step_id: str) -> list[Item]:
        """The items with places that a step is, or is in, innermost first."""
        node = self._outline.nodes.get(step_id)
        if node is None or node.parent is None:
            return []
        if node.parent not in self._around:
            parent = self._outline.nodes[node.parent]
            has_places = parent.kind == "each" and places_of(parent.source.for_each) is not None
            self._around[parent.id] = has_places, self._items(parent.id)
        has_places, around = self._around[node.parent]
        return [Item(node.parent, step_id), *around] if has_places else around

    def _depth(self, loop: str) -> int:
        return sum(1 for _ in self._outline.ancestors(loop))

    def _order(self, step_id: str) -> tuple[int, ...]:
        """The order of the list: that of the steps around it first."""
        above = [node.id for node in self._outline.ancestors(step_id)]
        return tuple(self._position(name) for name in [*reversed(above), step_id])
