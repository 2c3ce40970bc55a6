"""Rings in a graph of needs: steps that wait for each other, so that none of them can ever begin.

Iterative and linear: a ring of 20,000 steps, or 10,000 rings of two, cost what reading the plan costs. No ring shares
a step with another; when one is mended, a second look may find the next.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence


def find_cycles(needs: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Rings as names from a step over what it needs back to itself: `["a", "b", "a"]`, in the order of `needs`."""
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
    """What is left when, again and again, every step that needs nothing that is left is taken away."""

    def __init__(self, needs: Mapping[str, Sequence[str]]) -> None:
        self._dependents: dict[str, list[str]] = {name: [] for name in needs}
        self.left = dict.fromkeys(needs, 0)
        for name, others in needs.items():
            for other in others:
                self._dependents[other].append(name)
            self.left[name] = len(others)
        self.take([name for name, count in self.left.items() if not count])

    def take(self, names: Sequence[str]) -> None:
        """Take these away, and all that then needs nothing any more."""
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
