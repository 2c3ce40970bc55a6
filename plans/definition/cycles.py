"""Finds dependency cycles: steps that wait for each other, so that none of them can start.

Iterative and linear: a cycle of 20,000 steps, or 10,000 cycles of two, cost no more than parsing the plan. The cycles
returned are disjoint; fixing one may reveal another.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence


def find_cycles(needs: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Disjoint cycles as paths from a step back to itself, `["a", "b", "a"]`, in the order of `needs`."""
    peel = _Peel(needs)
    found: list[list[str]] = []
    for name in needs:
        while name in peel.left:
            ring = _ring(needs, peel, name)
            found.append(ring)
            peel.take(ring[1:])
    return found


def _ring(needs: Mapping[str, Sequence[str]], peel: _Peel, name: str) -> list[str]:
    path: dict[str, int] = {}
    while name not in path:
        path[name] = len(path)
        name = next(other for other in needs[name] if other in peel.left)
    return [*list(path)[path[name] :], name]


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
