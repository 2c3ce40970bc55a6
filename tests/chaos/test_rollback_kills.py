"""kill -9 of worker or server at any moment of a rollback: each undo takes effect once, last completed step first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from tests.chaos.conftest import Chaos
from tests.kit.driving import step, work
from tests.kit.waiting import until
from tests.nightly import only_nightly, only_sampled

LOG = "log.txt"
END = "<end>"
UNDOABLE = 10
START, END_OF_WORK, EDITED = "start", "end", "edited"


def adds(line: str) -> dict[str, Any]:
    """A call that adds a line to the log, once, whatever kills it."""
    return {"tool": "edit_file", "args": {"path": LOG, "oldText": END, "newText": f"{line}\n{END}"}}


def undoable(number: int) -> dict[str, Any]:
    """A step with an undo of two steps: one that takes its time, and one that writes into the log."""
    slow = work("slow", args={"name": f"undo{number}"}, seconds=0.3)
    undo = {"steps": [slow, {"id": "write", **adds(f"undo {number}"), "dependsOn": ["slow"]}]}
    return {"id": f"s{number}", **adds(f"do {number}"), "dependsOn": [f"s{number - 1}" if number else "log"],
            "undo": undo}  # fmt: skip


def moments(chaos: Chaos, undos: int, each: int, steps: int = UNDOABLE) -> list[tuple[int, Sequence[str]]]:
    """By step, in the order of the rollback, at which points of its undo to kill: `each` times, for some steps."""
    chosen = sorted(chaos.chance.sample(range(steps), undos), reverse=True)
    late = [chaos.chance.choice([(), (END_OF_WORK,), (EDITED,), (END_OF_WORK, EDITED)][: each + 1]) for _ in chosen]
    return [(number, [START] * (each - len(rest)) + list(rest)) for number, rest in zip(chosen, late, strict=True)]


@pytest.mark.parametrize(("undos", "each", "count"), [only_sampled(1, 1, 3), only_nightly(10, 5, UNDOABLE)])
async def test_each_undo_takes_effect_once_and_in_reverse_however_often_workers_die(
    chaos: Chaos, undos: int, each: int, count: int
) -> None:
    await chaos.worker.up()
    steps = [{"id": "log", "tool": "write_file", "args": {"path": LOG, "content": f"{END}\n"}}]
    steps += [undoable(number) for number in range(count)]
    broken = {"id": "broken", "tool": "refuse", "args": {"code": "NO"}, "dependsOn": [f"s{count - 1}"]}
    plans = replace(chaos.plans, ceiling=timedelta(seconds=240 + 30 * undos * each))
    plan = await plans.start([*steps, broken], rollback=True)
    kills = 0
    for number, points in moments(chaos, undos, each, count):
        for again, point in enumerate(points):
            await until(partial(_is_at, chaos, number, point, again), f"{point} {again} of the undo of s{number}")
            chaos.worker.kill()
            kills += 1
            await chaos.worker.up()
    view = await plan.ended()
    assert kills == undos * each
    down = range(count - 1, -1, -1)
    assert _logged(chaos) == [*(f"do {number}" for number in range(count)), *(f"undo {number}" for number in down)]
    assert [step(view, f"s{number}")["undo"]["status"] for number in down] == ["completed"] * count
    calls = [name for name in await plan.scheduled() if ".undo." in name]
    assert calls == [f"s{number}.undo.{name}" for number in down for name in ("slow", "write")]


@pytest.mark.slow
async def test_each_undo_takes_effect_once_and_in_reverse_when_the_server_dies(chaos: Chaos) -> None:
    await chaos.worker.up()
    steps = [{"id": "log", "tool": "write_file", "args": {"path": LOG, "content": f"{END}\n"}}]
    steps += [undoable(number) for number in range(UNDOABLE)]
    broken = {"id": "broken", "tool": "refuse", "args": {"code": "NO"}, "dependsOn": [f"s{UNDOABLE - 1}"]}
    plan = await replace(chaos.plans, ceiling=timedelta(minutes=10)).start([*steps, broken], rollback=True)
    for number, points in moments(chaos, 3, 1):
        await until(partial(_is_at, chaos, number, points[0], 0), f"{points[0]} of the undo of s{number}")
        chaos.server.kill()
        await chaos.server.up()
    view = await plan.ended()
    down = range(UNDOABLE - 1, -1, -1)
    assert _logged(chaos) == [*(f"do {number}" for number in range(UNDOABLE)), *(f"undo {number}" for number in down)]
    assert [step(view, f"s{number}")["undo"]["status"] for number in down] == ["completed"] * UNDOABLE


def _is_at(chaos: Chaos, number: int, point: str, again: int) -> bool:
    """Whether the undo of a step has come to a point: to its start so many times, or past it."""
    if point == EDITED:
        return f"undo {number}" in _logged(chaos)
    lines = [line for line in chaos.plans.ledger if line[:2] == [point, f"undo{number}"]]
    return len(lines) > (again if point == START else 0)


def _logged(chaos: Chaos) -> list[str]:
    path = chaos.plans.workspace / LOG
    return [line for line in path.read_text().splitlines() if line != END] if path.exists() else []
