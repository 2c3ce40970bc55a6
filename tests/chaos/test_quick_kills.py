"""kill -9 of a worker that makes quick calls: at most a quarter of a second of them is made again, and no effect."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import pytest

from plans.quick.batching import QUICK_SECONDS
from tests.chaos.conftest import KILLS, Chaos
from tests.driving import work
from tests.waiting import until

LOOKS, EVERY = 200, 40
"""Calls of a pure tool, one after the other, and how many are between two effects."""


def looks_and_effects() -> list[dict[str, Any]]:
    """The chain."""
    steps: list[dict[str, Any]] = []
    for number in range(LOOKS):
        needs = [steps[-1]["id"]] if steps else []
        name = f"look{number}"
        steps.append({"id": name, "tool": "look", "args": {"name": name, "seconds": 0.004}, "dependsOn": needs})
        if number % EVERY == EVERY - 1:
            steps.append(work(f"effect{number}", name))
    return steps


@pytest.mark.slow
async def test_a_kill_costs_a_quarter_of_a_second_of_reads_and_no_effect(chaos: Chaos) -> None:
    await chaos.worker.up()
    plan = await chaos.plans.start(looks_and_effects(), durable="batch")
    kills: list[int] = []
    for size in sorted(chaos.chance.sample(range(20, LOOKS - 20), KILLS)):
        await until(partial(_has, chaos, size), f"{size} lines in the ledger")
        chaos.worker.kill()
        kills.append(len(chaos.plans.ledger))
        await chaos.worker.up()
    await plan.handle.result()
    ledger = chaos.plans.ledger
    lost = [made_again(ledger[start:end], ledger[end:]) for start, end in zip([0, *kills], kills, strict=False)]
    print(f"made again after each kill: {[len(calls) for calls in lost]} calls")
    assert any(lost), f"seed {chaos.seed}: no kill hit a window"
    for calls in lost:
        finished = calls[:-1]  # the last one may not have come back from the tool
        took = max(ended for _, ended in finished) - min(began for began, _ in finished) if finished else 0.0
        assert took <= QUICK_SECONDS, f"seed {chaos.seed}: {len(finished)} calls, {took} s of work, were made again"
    starts = Counter((name, attempt) for what, name, attempt, *_ in ledger if what == "start")
    assert set(starts.values()) == {1}, f"seed {chaos.seed}: an attempt of an effect was made twice"
    assert len(starts) <= LOOKS // EVERY + len(kills), f"seed {chaos.seed}: {starts}"


def made_again(before: list[list[str]], after: list[list[str]]) -> list[tuple[float, float]]:
    """When the calls began and ended that are in the ledger before a kill and again after it."""
    names = {line[1] for line in after if line[0] == "look"}
    return [(float(line[2]), float(line[3])) for line in before if line[0] == "look" and line[1] in names]


def _has(chaos: Chaos, size: int) -> bool:
    return len(chaos.plans.ledger) >= size
