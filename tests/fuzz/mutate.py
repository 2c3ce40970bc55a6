"""Valid plans, and plans and states with random faults. Everything follows from one random number generator."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from typing import Any

Place = tuple[Any, Any]
"""A dict or list, and a key of it."""

ODD: list[Any] = [
    None, True, False, 0, -1, 1, 10**40, 1e308, -0.0, float("nan"), float("inf"), "", " ", "a", "x" * 3_000, "\ud800",
    "\x00", "\u202e", "{{a}}", "{{s1.x}}", "{{", "$s1", "$", "`1`", "inputs.n", "$inputs.n", "2026-01-01",
    "2026-01-01T00:00:00", "9999-12-31T23:59:59Z", "running", "completed", "call_1", "sleep", "agent", "run_command",
    "/_sys/x",
    [], [[]], [None], ["s1", "s1"], {}, {"": ""}, {"a": {"b": {"c": []}}}, [[[[[[[[[[]]]]]]]]]], {"$ref": "#"},
]  # fmt: skip
"""Values put where they do not belong."""


def places(data: Any) -> Iterator[Place]:
    """Every place of a value in a tree of JSON."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in list(items):
        yield data, key
        yield from places(value)


def _replace(rng: random.Random, where: Place, every: list[Place]) -> None:
    where[0][where[1]] = copy.deepcopy(rng.choice(ODD))


def _delete(rng: random.Random, where: Place, every: list[Place]) -> None:
    del where[0][where[1]]


def _transplant(rng: random.Random, where: Place, every: list[Place]) -> None:
    other = rng.choice(every)
    where[0][where[1]] = copy.deepcopy(other[0][other[1]])


def _wrap(rng: random.Random, where: Place, every: list[Place]) -> None:
    value = where[0][where[1]]
    where[0][where[1]] = rng.choice(([value], {"value": value}, str(value)))


def _add(rng: random.Random, where: Place, every: list[Place]) -> None:
    value = copy.deepcopy(rng.choice((rng.choice(ODD), where[0][where[1]])))
    if isinstance(where[0], list):
        where[0].insert(rng.randrange(len(where[0]) + 1), value)
    else:
        where[0][rng.choice((f"{where[1]}x", "extra", "id", "status", "args", "when", "queue", ""))] = value


def _alter(rng: random.Random, where: Place, every: list[Place]) -> None:
    value = where[0][where[1]]
    if isinstance(value, bool):
        where[0][where[1]] = not value
    elif isinstance(value, int | float):
        where[0][where[1]] = rng.choice((-value, value + 1, value * 1_000, str(value), value / 3))
    elif isinstance(value, str):
        cut = rng.randrange(len(value) + 1)
        where[0][where[1]] = value[:cut] + rng.choice(("", "{", "'", "\n", "\\", "é", value)) + value[cut:]
    elif isinstance(value, list):
        rng.shuffle(value)


FAULTS: list[Callable[[random.Random, Place, list[Place]], None]] = [
    _replace, _replace, _delete, _transplant, _wrap, _add, _alter, _alter
]  # fmt: skip


def faulty(rng: random.Random, data: Any, faults: int) -> Any:
    """A copy of the data with so many random faults."""
    changed = copy.deepcopy(data)
    for _ in range(faults):
        every = list(places(changed))
        if every:
            rng.choice(FAULTS)(rng, rng.choice(every), every)
    return changed


def plan(rng: random.Random) -> dict[str, Any]:
    """A valid plan that ends by itself within seconds."""
    names = [f"s{number}" for number in range(1, rng.randint(2, 9))]
    steps: list[dict[str, Any]] = []
    for index, name in enumerate(names):
        needs = rng.sample(names[:index], rng.randint(0, min(2, index)))
        value = rng.choice(([1, "two"], {"x": name}, "text", *(f"{{{{{need}}}}}" for need in needs)))
        each: dict[str, Any] = {"id": name, "tool": "work", "args": {"name": name, "value": value}, "dependsOn": needs}
        optional = {
            "description": "Step {name}", "when": "inputs.n > `0`", "timeout": 20, "notes": "remark", "critical": False,
            "retry": {"attempts": 2, "delay": 0.1}, "requiresApproval": False, "onFailure": "block",
        }  # fmt: skip
        each |= {key: optional[key] for key in rng.sample(sorted(optional), rng.randint(0, 3))}
        steps.append(each)
    inputs = {"n": {"type": "integer", "default": rng.randint(0, 2)}}
    return {"title": f"Plan {rng.random()}", "inputs": inputs, "maxParallel": rng.randint(1, 5), "steps": steps}


def mutated_plan(rng: random.Random) -> Any:
    """A valid plan after up to four changes: more than half of them sound, the others anything."""
    data: Any = plan(rng)
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
        if rng.random() < 0.6 and isinstance(data, dict) and isinstance(data.get("steps"), list):
            _sound(rng, data)
        else:
            data = faulty(rng, data, 1)
    return data


def _sound(rng: random.Random, data: dict[str, Any]) -> None:
    """A change after which the plan is as valid as before."""
    steps = [each for each in data["steps"] if isinstance(each, dict)]
    chosen = rng.choice(steps) if steps else {}
    kind = rng.randrange(6)
    if kind == 0:
        data["title"] = rng.choice(("漢字", "a\nb", "", "x" * 900))
    elif kind == 1:
        data["maxParallel"] = rng.randint(1, 100)
    elif kind == 2:
        chosen["description"] = rng.choice(("“quoted”", "$5", "", "y" * 300))
    elif kind == 3:
        chosen["timeout"] = rng.randint(1, 60)
    elif kind == 4:
        number = rng.randrange(10**6)
        data["steps"].append({"id": f"n{number}", "tool": "work", "args": {"name": f"n{number}"}})
    else:
        rng.shuffle(data["steps"])
