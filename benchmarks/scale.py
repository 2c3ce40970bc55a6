"""Scaling from one step to ten thousand: cost per step, history per run, worker memory."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks import graphs
from benchmarks.bench import Bench
from benchmarks.graphs import Steps
from benchmarks.sample import Sample, middle, ratio
from benchmarks.speed import Paired, paired
from benchmarks.stand import KINDS, Stand
from benchmarks.tables import Table

SHAPES: dict[str, Callable[[int], Steps]] = {
    "fan-out": graphs.fan_out,
    "layered": graphs.layered,
    "chain": graphs.chain,
}
SIZES = (1, 100, 1_000, 10_000)
GROWTH, RUN_EVENTS, MEMORY = 1.2, 12_000, 300e6
"""Bars for the largest plan: CPU per step relative to a plan a tenth as large, events per run, bytes of memory."""


async def measure(bench: Bench) -> list[Table]:
    """Measure every shape in every size; the largest size only once."""
    table = Table(
        title="Size",
        columns=["graph", "steps", "wall s", "ms/step", "ratio", "to bare", "worker CPU ms/step", "server CPU ms/step",
                 "events/step", "bytes/step", "runs", "longest run", "worker peak MB", "by hand MB", "bare MB"],
        note=f"Bars for the largest: worker and server CPU per step within {GROWTH} of the plan a tenth as large,"
        f" no run over {RUN_EVENTS:,} events, worker under {MEMORY / 1e6:.0f} MB."
        " `ratio` is wall time against the workflow written by hand, `to bare` against the bare yardstick.",
    )  # fmt: skip
    sizes = SIZES[:-1] if bench.quick else SIZES
    for shape, graph in SHAPES.items():
        before: Paired | None = None
        async with bench.stand() as stand:
            for size in sizes:
                bench.say(f"{shape} {size}")
                samples = await _samples(stand, graph(size), bench.repeats)
                add(table, shape, samples, before if size == sizes[-1] else None)
                before = samples
    return [table]


async def _samples(stand: Stand, steps: Steps, repeats: int) -> Paired:
    if len(steps) < 10_000:
        return await paired(stand, [steps], repeats)
    return {kind: [await stand.run(kind, [steps])] for kind in KINDS}


def add(table: Table, shape: str, samples: Paired, before: Paired | None) -> None:
    """The row of one shape and size; `before`: the plan a tenth as large, if there is a bar."""
    ours, theirs, bare = samples["plan"], samples["minimal"], samples["bare"]
    steps = ours[0].steps
    peak, longest = max(sample.peak_memory for sample in ours), max(sample.longest_run for sample in ours)
    reached = None
    if before is not None:
        growth = ratio(ours, before["plan"], _cpu)
        reached = growth <= GROWTH and longest <= RUN_EVENTS and peak <= MEMORY
    table.add(
        shape,
        f"{steps:,}",
        f"{middle(ours, lambda one: one.seconds):.2f}",
        f"{1_000 * middle(ours, lambda one: one.seconds) / steps:.2f}",
        f"{ratio(ours, theirs, lambda one: one.seconds):.2f}",
        f"{ratio(ours, bare, lambda one: one.seconds):.2f}",
        f"{1_000 * middle(ours, lambda one: one.worker_cpu) / steps:.2f}",
        f"{1_000 * middle(ours, lambda one: one.server_cpu) / steps:.2f}",
        f"{middle(ours, lambda one: one.events) / steps:.2f}",
        f"{middle(ours, lambda one: one.history_bytes) / steps:.0f}",
        f"{ours[0].runs}",
        f"{longest:,}",
        f"{peak / 1e6:.0f}",
        f"{max(sample.peak_memory for sample in theirs) / 1e6:.0f}",
        f"{max(sample.peak_memory for sample in bare) / 1e6:.0f}",
        reached=reached,
    )


def _cpu(sample: Sample) -> float:
    return (sample.worker_cpu + sample.server_cpu) / sample.steps
