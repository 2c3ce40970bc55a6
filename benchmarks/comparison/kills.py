"""Kills an engine in the middle of a run, starts it again as it was, and judges by the ledger what came of it.

Counted by the steps and not quoted from documents: a step that ended and was not recorded yet counts as done again for
everybody, us included.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from benchmarks import graphs
from benchmarks.comparison.contender import Contender
from benchmarks.comparison.ledgers import Judged, judge
from benchmarks.graphs import Steps

SECONDS = 20.0
"""Seconds after which nothing is expected to continue by itself any more."""
PATIENCE = 180.0


@dataclass(frozen=True)
class Killed:
    """What became of one run."""

    judged: Judged
    by_itself: bool
    """Whether it went on without anybody doing anything but starting what was killed."""
    seconds: float
    """From the restart, or from when it was told to go on, to the first step that began; infinite if none did."""
    completed: int
    """Steps that the engine knows as done."""
    steps: int
    error: str = ""


def steps_with(ledger: str, count: int) -> Steps:
    """Layers of 20 steps of 10 ms to 1 s that write into this ledger."""
    return [{**step, "tool": "task", "args": {**step["args"], "ledger": ledger}} for step in graphs.skewed(count)]


async def killed(contender: Contender, name: str, steps: Steps, ends: int, *, everything: bool, wait: float) -> Killed:
    """Kill when so many steps have ended. `wait`: how long to wait for it to continue by itself.

    Raises RuntimeError or TimeoutError if the engine cannot even be killed in the middle.
    """
    file = contender.ledger(steps[0]["args"]["ledger"])

    def lines() -> list[str]:
        return file.read_text().splitlines() if file.exists() else []

    await contender.begin(name, steps)
    async with asyncio.timeout(PATIENCE):
        while sum(line.startswith("end ") for line in lines()) < ends:
            await asyncio.sleep(0.01)
    await contender.kill(everything=everything)
    before, began = lines(), time.perf_counter()
    going = asyncio.create_task(_longer(lines, len(before)))
    error, by_itself, completed = "", False, 0
    try:
        async with asyncio.timeout(PATIENCE):
            await contender.restart(everything=everything)
            by_itself = await _within(going, wait)
            if not by_itself:
                began = time.perf_counter()
                await contender.resume(name, steps)
            completed = await contender.result(name, steps)
    except (RuntimeError, TimeoutError, OSError) as problem:
        error = str(problem) or f"did not end in {PATIENCE:.0f} s"
    seconds = going.result() - began if going.done() else float("inf")
    going.cancel()
    judged = judge(before, lines()[len(before) :], [step["id"] for step in steps])
    return Killed(judged, by_itself, seconds, completed, len(steps), error)


async def _longer(lines: Callable[[], list[str]], length: int) -> float:
    """When the ledger has become longer."""
    while len(lines()) <= length:
        await asyncio.sleep(0.02)
    return time.perf_counter()


async def _within(task: asyncio.Task[float], seconds: float) -> bool:
    with suppress(TimeoutError):
        await asyncio.wait_for(asyncio.shield(task), seconds)
    return task.done()
