"""The measured graphs, as the steps of a plan file. Deterministic: random choices use a fixed seed."""

from __future__ import annotations

import random
from typing import Any

Steps = list[dict[str, Any]]

LAYER = 50
"""Steps in one layer of a layered graph."""


def chain(count: int) -> Steps:
    """Each step depends on the previous one."""
    return [_noop(index, [index - 1] if index else []) for index in range(count)]


def fan_out(count: int) -> Steps:
    """All steps in parallel, except the last, which depends on all others."""
    return [_noop(index, []) for index in range(count - 1)] + [_noop(count - 1, list(range(count - 1)))]


def layered(count: int) -> Steps:
    """Layers of 50; each step depends on three of the previous layer."""
    rng = random.Random(4)
    steps = []
    for index in range(count):
        start = index // LAYER * LAYER
        before = range(max(0, start - LAYER), start)
        steps.append(_noop(index, sorted(rng.sample(before, min(3, len(before))))))
    return steps


def references(count: int, size: int) -> Steps:
    """Ten chains in which each step receives the text of the previous step and returns it."""
    steps: Steps = []
    for index in range(count):
        if index < 10:
            steps.append({"id": _id(index), "tool": "make_text", "args": {"size": size, "mark": index}})
        else:
            steps.append({"id": _id(index), "tool": "pass_text", "args": {"text": f"${_id(index - 10)}"}})
    return steps


def skewed(count: int, shortest: float = 0.01, longest: float = 1.0) -> Steps:
    """Layers of 20 of steps that take `shortest` to `longest` seconds; each depends on two of the previous layer."""
    rng = random.Random(7)
    steps: Steps = []
    for index in range(count):
        start = index // 20 * 20
        before = range(max(0, start - 20), start)
        needs = [_id(each) for each in sorted(rng.sample(before, min(2, len(before))))]
        seconds = round(shortest * (longest / shortest) ** rng.random(), 4)
        steps.append({"id": _id(index), "tool": "wait", "args": {"seconds": seconds}, "dependsOn": needs})
    return steps


def critical_path(steps: Steps) -> float:
    """Seconds of the longest path through a graph of `wait` steps."""
    ends: dict[str, float] = {}
    for step in steps:
        begin = max((ends[name] for name in step["dependsOn"]), default=0.0)
        ends[step["id"]] = begin + step["args"]["seconds"]
    return max(ends.values())


def _id(index: int) -> str:
    return f"s{index}"


def _noop(index: int, needs: list[int]) -> dict[str, Any]:
    return {"id": _id(index), "tool": "noop", "args": {"number": index}, "dependsOn": [_id(each) for each in needs]}
