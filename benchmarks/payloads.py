"""Large values passed between steps: they must arrive complete, without growing the history."""

from __future__ import annotations

import time
from typing import Any

from benchmarks.bench import Bench
from benchmarks.graphs import Steps
from benchmarks.history import size_of
from benchmarks.stand import Stand
from benchmarks.tables import Table
from plansurvive.client import runs

HISTORY = 1_000_000
"""Bar for the history size in bytes."""


async def measure(bench: Bench) -> list[Table]:
    """Measure values of each size, produced by some steps and consumed by as many."""
    table = Table(
        title="Large values",
        columns=["values", "wall s", "history bytes", "complete", "worker peak MB"],
        note=f"One step produces each value, another consumes it. Bar: complete, history under {HISTORY:,} bytes.",
    )
    small = 10 if bench.quick else 1
    async with bench.stand() as stand:
        for count, size in ((200 // small, 10_000), (1, 60_000_000 // small), (10, 5_000_000 // small)):
            bench.say(f"{count} of {size:,} bytes")
            await _add(table, stand, count, size)
    return [table]


async def _add(table: Table, stand: Stand, count: int, size: int) -> None:
    worker = stand.worker("plan")
    worker.forget_peak()
    began = time.perf_counter()
    handle = await stand.start("plan", _steps(count, size))
    await handle.result()
    seconds = time.perf_counter() - began
    history = sum(run.bytes for run in await size_of(stand.client, handle))
    view = await runs.show(stand.client, handle.id)
    whole = sum(step.result is not None and step.result.value == size for step in view.steps)
    table.add(
        f"{count} of {size / 1e6:g} MB",
        f"{seconds:.2f}",
        f"{history:,}",
        f"{whole} of {count}",
        f"{worker.peak_memory / 1e6:.0f}",
        reached=whole == count and history < HISTORY,
    )


def _steps(count: int, size: int) -> Steps:
    made: list[dict[str, Any]] = [
        {"id": f"made{index}", "tool": "make_text", "args": {"size": size, "mark": index}} for index in range(count)
    ]
    taken = [
        {"id": f"taken{index}", "tool": "measure_text", "args": {"text": f"$made{index}"}} for index in range(count)
    ]
    return [*made, *taken]
