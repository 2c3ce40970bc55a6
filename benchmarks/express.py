"""Plans whose steps run several in one activity, beside the same plans without and the bare yardstick, data on disk.

The bars are for steps that change nothing: an activity each is what `bare` has.
"""

from __future__ import annotations

from typing import Any

from benchmarks import loops, scale, speed
from benchmarks.bench import Bench
from benchmarks.loops import Way
from benchmarks.sample import Sample
from benchmarks.stand import Kind, Stand
from benchmarks.tables import Table
from benchmarks.to_bare import Row, medians

BARS = {"chain": 0.10, "fan-out": 0.35, "layered": 0.25, "plans": 0.60, "loop": 0.20}
"""Wall time relative to bare."""
SIDES = ("express", "plan", "bare")


def rows(quick: bool) -> list[Row]:
    """The rows, in the order of the table."""
    found = [
        Row(name, bar, steps)
        for name, steps in speed.workloads(quick).items()
        for kind, bar in BARS.items()
        if kind in name
    ]
    items = 1_000 if quick else 10_000
    return [*found, Row(f"loop of {items} empty items", BARS["loop"], [], items)]


async def measure(bench: Bench) -> list[Table]:
    """Run each row on all sides, alternating after a warm-up round."""
    table = Table(
        title="Express",
        columns=["workload", "express s", "plan s", "bare s", "to bare", "bar", "to plan"],
        note="Wall time, data on disk, steps that do nothing.",
    )
    async with bench.stand(durable=True, kinds=("plan", "bare")) as stand:
        for row in rows(bench.quick):
            add(table, row, *await medians(bench, row, SIDES, lambda side, row: _seconds(stand, side, row)))
            bench.say(" ".join(table.rows[-1].cells))
    return [table, await _memory(bench)]


def add(table: Table, row: Row, express: float, plan: float, bare: float) -> None:
    """Add a row, of medians in seconds."""
    ratio = express / bare
    cells = [f"{express:.3f}", f"{plan:.2f}", f"{bare:.2f}", f"{ratio:.3f}", f"{row.bar:.2f}", f"{express / plan:.3f}"]
    table.add(row.name, *cells, reached=ratio <= row.bar)


async def _memory(bench: Bench) -> Table:
    """The most memory of a worker that has run one plan, and nothing before it."""
    count = 1_000 if bench.quick else 10_000
    table = Table(
        title=f"Memory of a worker with {count:,} express steps",
        columns=["graph", "express MB", "plan MB", "to plan", "bar", "express s", "plan s"],
        note="Peak of resident memory, a new worker for each; one run. Bar: not more than the same plan without.",
    )
    async with bench.stand(durable=True, kinds=("plan",)) as stand:
        for name, graph in scale.SHAPES.items():
            found = list[Sample]()
            for express in (True, False):
                await stand.stop_worker("plan")
                await stand.start_worker("plan")
                found.append(await stand.run("plan", [graph(count)], express=express))
            ours, theirs = (each.peak_memory for each in found)
            cells = [f"{ours / 1e6:.0f}", f"{theirs / 1e6:.0f}", f"{ours / theirs:.2f}", "1.00"]
            times = [f"{each.seconds:.1f}" for each in found]
            table.add(name, *cells, *times, reached=ours <= theirs)
            bench.say(" ".join(table.rows[-1].cells))
    return table


async def _seconds(stand: Stand, side: str, row: Row) -> float:
    kind: Kind = "bare" if side == "bare" else "plan"
    fields: dict[str, Any] = {"express": side == "express"} if kind == "plan" else {}
    if row.items:
        return await loops.run(stand, Way(kind), "noop", "number", list(range(row.items)), **fields)
    return (await stand.run(kind, row.graphs, **fields)).seconds
