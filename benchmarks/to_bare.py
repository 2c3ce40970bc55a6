"""A plan beside the bare yardstick, data on disk as users have it: every workload with its bar in one table.

The bars are for the yardstick as the SDK comes, which compresses each message. Beside it is one that does not, as a
plan does not on a server of this machine either.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from statistics import mean, median
from typing import NamedTuple, TypeVar

from benchmarks import graphs, loops, speed
from benchmarks.bench import Bench
from benchmarks.graphs import Steps
from benchmarks.loops import Way
from benchmarks.stand import Kind, Stand
from benchmarks.tables import Table

BARS = (1.05, 1.10, 1.10, 1.15, 1.10)
"""Wall time relative to bare, for the workloads of `speed` in their order."""
LARGEST = 1.15
"""The same for 10,000 steps, and for a loop of 10,000 items."""
SIDES: tuple[Kind, ...] = ("plan", "bare", "uncompressed")
Side = TypeVar("Side", bound=str)
ROUND_SECONDS = 2.0
"""A round of a row takes at least so long on each side: what takes less is run several times. One run of 0.4 s is a
tenth longer or shorter than the next one."""


class Row(NamedTuple):
    """What is measured: graphs that run concurrently, or a loop of some empty items."""

    name: str
    bar: float
    graphs: list[Steps]
    items: int = 0


def rows(quick: bool) -> list[Row]:
    """The rows, in the order of the table."""
    largest = 1_000 if quick else 10_000
    return [
        *(Row(name, bar, steps) for (name, steps), bar in zip(speed.workloads(quick).items(), BARS, strict=True)),
        Row(f"layered {largest}", LARGEST, [graphs.layered(largest)]),
        Row(f"loop of {largest} empty items", LARGEST, [], largest),
    ]


async def measure(bench: Bench) -> list[Table]:
    """Run each row on all sides, alternating after a warm-up round."""
    table = Table(
        title="A plan and the bare yardstick",
        columns=["workload", "wall s", "bare s", "uncompressed s", "to bare", "bar", "to uncompressed"],
        note="Wall time, data on disk. `uncompressed`: bare without the gzip of the SDK. The bar is for `bare`.",
    )
    async with bench.stand(durable=True, kinds=SIDES) as stand:
        for row in rows(bench.quick):
            add(table, row, *await medians(bench, row, SIDES, lambda kind, row: _seconds(stand, kind, row)))
            bench.say(" ".join(table.rows[-1].cells))  # the last rows take most of the time
    return [table]


async def medians(
    bench: Bench, row: Row, sides: Sequence[Side], seconds: Callable[[Side, Row], Awaitable[float]]
) -> list[float]:
    """The median time of a row on each side: they alternate, after a warm-up round."""
    bench.say(row.name)
    found: dict[Side, list[float]] = {side: [] for side in sides}
    for turn in range(bench.repeats + 1):
        for side in sides if turn % 2 else reversed(sides):
            took = [await seconds(side, row)]
            while sum(took) < ROUND_SECONDS and not bench.quick:
                took.append(await seconds(side, row))
            if turn:
                found[side].append(mean(took))
    return [median(found[side]) for side in sides]


def add(table: Table, row: Row, plan: float, bare: float, uncompressed: float) -> None:
    """Add a row, of medians in seconds."""
    table.add(
        row.name,
        f"{plan:.2f}",
        f"{bare:.2f}",
        f"{uncompressed:.2f}",
        f"{plan / bare:.2f}",
        f"{row.bar:.2f}",
        f"{plan / uncompressed:.2f}",
        reached=plan / bare <= row.bar,
    )


async def _seconds(stand: Stand, kind: Kind, row: Row) -> float:
    if row.items:
        return await loops.run(stand, Way(kind), "noop", "number", list(range(row.items)))
    return (await stand.run(kind, row.graphs)).seconds
