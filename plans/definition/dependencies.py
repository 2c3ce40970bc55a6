"""Dependencies of a step, and cycles of them: steps that wait for each other, so that none of them can start.

The search for cycles is iterative and linear: a cycle of 20,000 steps, or 10,000 cycles of two, cost no more than
parsing the plan. The cycles returned are disjoint; fixing one may reveal another.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from plansurvive.plans.definition.locations import MAX_FIELD
from plansurvive.plans.definition.scopes import bodies, call_names, item_names, path_in, undo_names
from plansurvive.plans.expressions.conditions import roots_of
from plansurvive.plans.expressions.items import roots_of_items
from plansurvive.plans.expressions.references import find
from plansurvive.plans.model import Step
from plansurvive.plans.model.opaque import scanned


def dependencies(step: Step) -> dict[str, bool]:
    """Ids of the steps beside this one that it depends on, in reading order; true where it uses the value.

    Those of a block are all that its steps, at any depth, use from outside of it. Raises BadExpression.
    """
    found = dict.fromkeys(step.depends_on, False)
    for each in mentions(step):
        found[each.root] = True
    return found


def outside_roots(step: Step) -> dict[str, None]:
    """The root names that a step, and the steps inside it, use from outside of it, `inputs` included."""
    return dict.fromkeys(each.root for each in mentions(step))


class Mention(NamedTuple):
    """One place that uses a name."""

    path: str
    """Path of the step."""
    field: str
    root: str


def mentions(step: Step, before: str = "") -> Iterator[Mention]:
    """Every use of a name from outside of a step, in reading order. Raises BadExpression."""
    path, inside = f"{before}{step.id}", call_names(step)
    for reference in find(scanned(step.tool, step.args)):
        if reference.root not in inside:
            yield Mention(path, field_of_place("args", reference.place), reference.root)
    if step.when is not None:
        items = item_names(step)
        yield from (Mention(path, "when", root) for root in roots_of(step.when) if root not in items)
    if step.for_each is not None:
        yield from (Mention(path, "forEach.items", root) for root in roots_of_items(step.for_each.items))
    for number, case in enumerate(step.switch or []):
        field = f"switch.{number}.when"
        yield from (Mention(path, field, root) for root in roots_of(case.when) if root not in inside)
    for body in bodies(step):
        names = body.names()
        for each in body.steps:
            yield from (found for found in mentions(each, path_in(body, path)) if found.root not in names)
    if step.undo is not None:
        own = undo_names(step)
        for reference in find(scanned(step.undo.tool or "", step.undo.args)):
            if reference.root not in own:
                yield Mention(path, field_of_place("undo.args", reference.place), reference.root)


def field_of_place(start: str, place: Sequence[str | int]) -> str:
    """The name of a place in arguments, as in `args.text.0`."""
    return ".".join([start, *(str(part)[:MAX_FIELD] for part in place)])[:MAX_FIELD]


def find_cycles(needs: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Disjoint cycles as paths from a step back to itself, `["a", "b", "a"]`, in the order of `needs`."""
    if _in_order(needs):
        return []
    peel = _Peel(needs)
    walk = _Walk(needs, peel)
    found: list[list[str]] = []
    for name in needs:
        while name in peel.left:
            ring = walk.ring(name)
            found.append(ring)
            peel.take(ring[1:])
    return found


def _in_order(needs: Mapping[str, Sequence[str]]) -> bool:
    """Whether each comes after all that it needs, as the steps of most plans do."""
    before = set[str]()
    for name, others in needs.items():
        if not before.issuperset(others):
            return False
        before.add(name)
    return True


class _Walk:
    """A walk along open dependencies. What is left of it after a ring was removed is not walked again."""

    def __init__(self, needs: Mapping[str, Sequence[str]], peel: _Peel) -> None:
        self._peel = peel
        self._unread: dict[str, Iterator[str]] = {name: iter(others) for name, others in needs.items()}
        self._path: list[str] = []
        self._places: dict[str, int] = {}
        self._next: dict[str, str] = {}

    def ring(self, name: str) -> list[str]:
        """The next cycle reached from `name`."""
        while self._path and self._path[-1] not in self._peel.left:
            del self._places[self._path.pop()]
        if self._path:
            name = self._following(self._path[-1])
        while name not in self._places:
            self._places[name] = len(self._path)
            self._path.append(name)
            name = self._following(name)
        return [*self._path[self._places[name] :], name]

    def _following(self, name: str) -> str:
        """The first open dependency. Those before it are never open again, so each is looked at once."""
        while name not in self._next or self._next[name] not in self._peel.left:
            self._next[name] = next(self._unread[name])
        return self._next[name]


class _Peel:
    """Topological peeling: `left` is what remains after repeatedly removing steps without open dependencies."""

    def __init__(self, needs: Mapping[str, Sequence[str]]) -> None:
        self._dependents: dict[str, list[str]] = {name: [] for name in needs}
        self.left = dict.fromkeys(needs, 0)
        for name, others in needs.items():
            for other in others:
                self._dependents[other].append(name)
            self.left[name] = len(others)
        self.take([name for name, count in self.left.items() if not count])

    def take(self, names: Sequence[str]) -> None:
        """Remove `names`, and then every step left without open dependencies."""
        free = deque(names)
        while free:
            name = free.popleft()
            if self.left.pop(name, None) is None:
                continue
            for dependent in self._dependents[name]:
                if dependent in self.left:
                    self.left[dependent] -= 1
                    if not self.left[dependent]:
                        free.append(dependent)
