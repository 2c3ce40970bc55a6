"""kill -9 while plans run as steps of another: parent and children continue, and no finished step runs again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.chaos.conftest import KILLS, Chaos
from tests.kit.driving import step, work
from tests.kit.waiting import until


def child(name: str) -> dict[str, Any]:
    """A step whose child plan runs a chain of five steps, the last of them in a plan of its own."""
    steps: list[dict[str, Any]] = [work(f"{name}0", seconds=0.1)]
    steps += [work(f"{name}{number}", f"{name}{number - 1}", seconds=0.1) for number in range(1, 4)]
    deep = {"id": "deep", "tool": "plan", "args": {"steps": [work(f"{name}4", seconds=0.1)]}, "dependsOn": [f"{name}3"]}
    return {"id": name, "tool": "plan", "args": {"steps": [*steps, deep]}}


def _grown(chaos: Chaos, lines: int) -> Callable[[], bool]:
    return lambda: len(chaos.plans.ledger) >= lines


def _settled(chaos: Chaos) -> dict[str, list[list[str]]]:
    """The lines in the ledger of steps whose result the server has: the next step of the chain has begun."""
    begun = {line[1] for line in chaos.plans.ledger}
    names = [f"{name}{number}" for name in "ab" for number in range(4) if f"{name}{number + 1}" in begun]
    return {name: _lines(chaos, name) for name in names}


def _lines(chaos: Chaos, name: str) -> list[list[str]]:
    return [line for line in chaos.plans.ledger if line[1] == name]


@pytest.mark.slow
async def test_child_plans_survive_workers_that_are_killed(chaos: Chaos) -> None:
    await chaos.worker.up()
    plan = await chaos.plans.start([child("a"), child("b"), work("end", "a", "b")])
    settled: dict[str, list[list[str]]] = {}
    for kill in range(1, KILLS + 1):
        await until(_grown(chaos, 4 * kill), "some steps have run")
        chaos.worker.kill()
        settled |= _settled(chaos)
        await chaos.worker.up()
    view = await plan.ended()
    assert view["status"] == "completed"
    ends = Counter((line[1], line[2]) for line in chaos.plans.ledger if line[0] == "end")
    assert {name for name, _ in ends} == {*(f"{name}{number}" for name in "ab" for number in range(5)), "end"}
    # A worker may die between the end of a step and its report: then another attempt follows, never another call.
    assert set(ends.values()) == {1}
    assert settled
    assert {name: _lines(chaos, name) for name in settled} == settled, "a finished step ran again"
    assert step(view, "a")["child"]["counts"] == {"total": 5, "completed": 5}
