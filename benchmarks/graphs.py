"""The shapes that are measured, as the steps of a plan file. Equal arguments give equal graphs: chance has a seed."""

from __future__ import annotations

import random
from typing import Any

Steps = list[dict[str, Any]]

LAYER = 50
"""Steps in one layer of a layered graph."""


def chain(count: int) -> Steps:
    """Each step waits for the one before."""
    return [_noop(index, [index - 1] if index else []) for index in range(count)]


def fan_out(count: int) -> Steps:
    """All steps but the last at once, which joins them."""
    return [_noop(index, []) for index in range(count - 1)] + [_noop(count - 1, list(range(count - 1)))]


def layered(count: int) -> Steps:
    """Layers of 50; each step waits for three of the layer before."""
    chance = random.Random(4)
    steps = []
    for index in range(count):
        start = index // LAYER * LAYER
        before = range(max(0, start - LAYER), start)
        steps.append(_noop(index, sorted(chance.sample(before, min(3, len(before))))))
    return steps


def references(count: int, size: int) -> Steps:
    """Ten chains in which every step takes the text of the step before and gives as much."""
    steps: Steps = []
    for index in range(count):
        if index < 10:
            steps.append({"id": _id(index), "tool": "make_text", "args": {"size": size, "mark": index}})
        else:
            steps.append({"id": _id(index), "tool": "pass_text", "args": {"text": f"${_id(index - 10)}"}})
    return steps


def skewed(count: int, shortest: float = 0.01, longest: float = 1.0) -> Steps:
    """Layers of 20 whose steps take from `shortest` to `longest` seconds, each after two of the layer before."""
    chance = random.Random(7)
    steps: Steps = []
    for index in range(count):
        start = index // 20 * 20
        before = range(max(0, start - 20), start)
        needs = [_id(each) for each in sorted(chance.sample(before, min(2, len(before))))]
        seconds = round(shortest * (longest / shortest) ** chance.random(), 4)
        steps.append({"id": _id(index), "tool": "wait", "args": {"seconds": seconds}, "dependsOn": needs})
    return steps


def critical_path(steps: Steps) -> float:
    """Seconds of the longest way through a graph of `wait` steps."""
    ends: dict[str, float] = {}
    for step in steps:
        begin = max((ends[name] for name in step["dependsOn"]), default=0.0)
        ends[step["id"]] = begin + step["args"]["seconds"]
    return max(ends.values())


def _id(index: int) -> str:
    return f"s{index}"


def _noop(index: int, needs: list[int]) -> dict[str, Any]:
    return {"id": _id(index), "tool": "noop", "args": {"number": index}, "dependsOn": [_id(each) for each in needs]}
