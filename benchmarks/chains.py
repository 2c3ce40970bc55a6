"""Chains of steps of pure tools, recorded one by one and together (`durable: batch`), beside workflows by hand."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any

from benchmarks import graphs
from benchmarks.bench import Bench
from benchmarks.graphs import Steps
from benchmarks.sample import Sample
from benchmarks.stand import Kind, Stand
from benchmarks.tables import Table

FASTER = 4.0
"""Bar: a chain recorded together, by the same chain recorded one by one, in wall time (issue 18)."""
WAYS: dict[str, tuple[Kind, dict[str, Any]]] = {
    "one by one": ("plan", {}),
    "together": ("plan", {"durable": "batch"}),
    "by hand": ("minimal", {}),
    "bare": ("bare", {}),
}


def reads(count: int) -> Steps:
    """A chain in which each step reads the same file."""
    return [
        {"id": f"s{index}", "tool": "read_file", "args": {"path": "read.txt"}, "dependsOn": [f"s{index - 1}"][:index]}
        for index in range(count)
    ]


async def measure(bench: Bench) -> list[Table]:
    """Run each graph each way, alternating."""
    count = 20 if bench.quick else 200
    shapes: dict[str, Callable[[], Steps]] = {
        f"chain {count}": lambda: graphs.chain(count),
        f"chain of {count} read_file": lambda: reads(count),
        f"fan-out and join {count}": lambda: graphs.fan_out(count),
    }
    table = Table(
        title="Quick calls",
        columns=["workload", "way", "wall s", "ms/step", "times as fast", "worker CPU ms/step", "events/step"],
        note=f"Bar: chains recorded together at least {FASTER:g} times as fast as one by one.",
    )
    async with bench.stand() as stand:
        (stand.workspace / "read.txt").write_text("a line\n" * 20)
        for name, shape in shapes.items():
            bench.say(name)
            found = await _samples(stand, shape(), bench.repeats, "read" not in name)
            slowest = median(sample.seconds for sample in found["one by one"])
            for way, samples in found.items():
                _add(table, name, way, samples, slowest)
    return [table]


async def _samples(stand: Stand, steps: Steps, repeats: int, by_hand: bool) -> dict[str, list[Sample]]:
    """The samples of each way; the first round is not counted. By hand there is no `read_file`."""
    ways = {way: how for way, how in WAYS.items() if by_hand or how[0] == "plan"}
    found: dict[str, list[Sample]] = {way: [] for way in ways}
    for turn in range(repeats + 1):
        for way in ways if turn % 2 else reversed(ways):
            kind, fields = ways[way]
            sample = await stand.run(kind, [steps], **fields)
            if turn:
                found[way].append(sample)
    return found


def _add(table: Table, name: str, way: str, samples: list[Sample], slowest: float) -> None:
    seconds = median(sample.seconds for sample in samples)
    per_step = (
        [sample.worker_cpu / sample.steps for sample in samples],
        [sample.events / sample.steps for sample in samples],
    )
    table.add(
        name,
        way,
        f"{seconds:.2f}",
        f"{1_000 * seconds / samples[0].steps:.2f}",
        f"{slowest / seconds:.1f}",
        f"{1_000 * median(per_step[0]):.2f}",
        f"{median(per_step[1]):.2f}",
        reached=slowest / seconds >= FASTER if way == "together" and name.startswith("chain") else None,
    )
