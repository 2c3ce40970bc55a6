"""Steps of very different length: makespan relative to the minimum, also of an engine that runs in waves."""

from __future__ import annotations

import time
from statistics import median

from benchmarks.bench import Bench
from benchmarks.graphs import Steps, critical_path, skewed
from benchmarks.minimal import IN_FLIGHT
from benchmarks.stand import Kind, Stand
from benchmarks.tables import Table

BAR = 1.05
WAYS: dict[str, tuple[Kind, bool]] = {
    "plan": ("plan", False),
    "by hand": ("minimal", False),
    "bare": ("bare", False),
    "waves": ("minimal", True),
}


async def measure(bench: Bench) -> list[Table]:
    """Run the same graph as a plan, by hand, and in waves."""
    steps = skewed(40, longest=0.2) if bench.quick else skewed(200)
    work = sum(step["args"]["seconds"] for step in steps)
    least = max(critical_path(steps), work / IN_FLIGHT)
    table = Table(
        title=f"Skewed graph: {len(steps)} steps in layers of 20, 10 ms to {0.2 if bench.quick else 1} s",
        columns=["engine", "makespan s", "least possible s", "ratio"],
        note=f"Least possible: the critical path, or {work:.1f} s of work / {IN_FLIGHT} slots if longer. Bar: {BAR}.",
    )
    makespans: dict[str, list[float]] = {way: [] for way in WAYS}
    async with bench.stand() as stand:
        for _ in range(bench.repeats):
            for way, (kind, waves) in WAYS.items():
                makespans[way].append(await _makespan(stand, kind, steps, waves))
    for way, seconds in makespans.items():
        ratio = median(seconds) / least
        reached = ratio <= BAR if way == "plan" else None
        table.add(way, f"{median(seconds):.2f}", f"{least:.2f}", f"{ratio:.3f}", reached=reached)
    return [table]


async def _makespan(stand: Stand, kind: Kind, steps: Steps, waves: bool) -> float:
    began = time.perf_counter()
    await (await stand.start(kind, steps, waves=waves)).result()
    return time.perf_counter() - began
