"""What a plan itself costs: one step that does nothing, beside a workflow with one activity written by hand."""

from __future__ import annotations

import time
from statistics import median

from benchmarks import graphs
from benchmarks.bench import Bench
from benchmarks.history import size_of
from benchmarks.stand import KINDS, Kind, Stand
from benchmarks.tables import Table

BAR = 1.5
"""A plan's milliseconds as a multiple of those by hand, at most."""
WARM = 5


async def measure(bench: Bench) -> list[Table]:
    """Start and wait for one after another, in turns, on a server with data on disk."""
    count = 10 if bench.quick else 100
    columns = ["kind", "ms", "of by hand", "worker CPU ms", "events", "bar"]
    note = f"Medians of {count} in turns, from the client's start to the result; CPU is the mean."
    table = Table(title="A single step", columns=columns, note=note)
    times: dict[Kind, list[float]] = {kind: [] for kind in KINDS}
    cpu, events = dict.fromkeys(KINDS, 0.0), dict.fromkeys(KINDS, 0)
    async with bench.stand(durable=True) as stand:
        for number in range(WARM + count):
            for kind in KINDS:
                seconds, used, events[kind] = await _one(stand, kind)
                if number >= WARM:
                    times[kind].append(1_000 * seconds)
                    cpu[kind] += 1_000 * used / count
    by_hand = median(times["minimal"])
    for kind in KINDS:
        ratio = median(times[kind]) / by_hand
        bar, reached = (f"{BAR}", ratio <= BAR) if kind == "plan" else ("", None)
        name = {"plan": "plan", "minimal": "by hand", "bare": "bare"}[kind]
        row = [name, f"{median(times[kind]):.1f}", f"{ratio:.2f}", f"{cpu[kind]:.1f}", f"{events[kind]}", bar]
        table.add(*row, reached=reached)
    return [table]


async def _one(stand: Stand, kind: Kind) -> tuple[float, float, int]:
    """Seconds, seconds of the worker's CPU, and events in the history of one."""
    worker = stand.worker(kind)
    cpu, began = worker.cpu, time.perf_counter()
    handle = await stand.start(kind, graphs.chain(1))
    await handle.result()
    seconds, used = time.perf_counter() - began, worker.cpu - cpu
    return seconds, used, sum([size.events for size in await size_of(stand.client, handle)])
