"""Latency from an approval to the step's start, and from a step's end to its watcher.

All clocks are of one machine: tools return the time of day at which they started or ended.
"""

from __future__ import annotations

import asyncio
import time
from statistics import median, quantiles
from typing import Any

from benchmarks.bench import Bench
from benchmarks.history import size_of
from benchmarks.stand import APPROVALS, Kind, Stand
from benchmarks.tables import Table
from plansurvive.client import runs

APPROVAL, WATCHER = 25.0, 50.0
"""Bars in milliseconds for the medians."""
PAUSE = 0.15
"""Seconds between two approvals, so that each finds the plan idle."""
WATCHERS = 10


async def measure(bench: Bench) -> list[Table]:
    """Measure both latencies on a server with data on disk; the first also for the workflow by hand."""
    count = 5 if bench.quick else 40
    columns = ["what", "p50 ms", "p95 ms", "by hand p50 ms", "bare p50 ms", "bar (p50)"]
    table = Table(title="Latency", columns=columns, note=f"{count} samples of each.")
    async with bench.stand(durable=True) as stand:
        others: tuple[Kind, ...] = ("minimal", "bare")
        by_hand = [f"{median(await _approvals(stand, count, kind)):.1f}" for kind in others]
        for name, bar, samples, theirs in (
            ("signal sent to activity started", APPROVAL, await _approvals(stand, count, "plan"), by_hand),
            ("step ended to watcher notified", WATCHER, await _watching(stand, count), ["", ""]),
        ):
            middle = median(samples)
            last = f"{quantiles(samples, n=20)[-1]:.1f}"
            table.add(name, f"{middle:.1f}", last, *theirs, f"{bar:.0f}", reached=middle <= bar)
        alone, watched = [
            median([await _events(stand, count, watchers) for _ in range(3)]) for watchers in (0, WATCHERS)
        ]
    note = "Medians of 3; the server may hand out a workflow task more or less, which is three events."
    events = Table(title="Watchers", columns=["events in history", "number", "bar"], note=note)
    events.add(f"a chain of {count} without watchers", f"{alone:.0f}", "")
    events.add(f"the same, {WATCHERS} watching", f"{watched:.0f}", f"{alone:.0f}", reached=watched <= alone)
    return [table, events]


async def _approvals(stand: Stand, count: int, kind: Kind) -> list[float]:
    steps: list[dict[str, Any]] = [{"id": f"s{n}", "tool": "now", "requiresApproval": True} for n in range(count)]
    handle = await stand.start(kind, steps, by_hand=APPROVALS)
    while kind == "plan" and not (await runs.show(stand.client, handle.id)).pending:
        await asyncio.sleep(PAUSE)
    sent: dict[str, float] = {}
    for step in steps:
        await asyncio.sleep(PAUSE)  # no queries meanwhile: the other row measures those
        sent[step["id"]] = time.time()
        await handle.signal("approve", {"stepId": step["id"]})
    ended = await handle.result()
    values = await _values(stand, handle.id) if kind == "plan" else ended
    return [1_000 * (values[step] - moment) for step, moment in sent.items()]


async def _watching(stand: Stand, count: int) -> list[float]:
    handle = await stand.start("plan", _chain(count, 0.15))
    notified: dict[str, float] = {}
    async for event in runs.watch(stand.client, handle.id):
        if event.status == "completed" and event.step_id:
            notified[event.step_id] = time.time()
    values = await _values(stand, handle.id)
    return [1_000 * (moment - values[step]) for step, moment in notified.items()]


async def _events(stand: Stand, count: int, watchers: int) -> int:
    """Number of history events of a chain with this many watchers."""
    handle = await stand.start("plan", _chain(count, 0.05))
    await asyncio.gather(handle.result(), *(_follow(stand, handle.id) for _ in range(watchers)))
    return sum([size.events for size in await size_of(stand.client, handle)])


async def _follow(stand: Stand, plan: str) -> None:
    async for _ in runs.watch(stand.client, plan):
        pass


def _chain(count: int, seconds: float) -> list[dict[str, Any]]:
    before: list[list[str]] = [[], *([f"s{number}"] for number in range(count - 1))]
    return [
        {"id": f"s{number}", "tool": "wait", "args": {"seconds": seconds}, "dependsOn": before[number]}
        for number in range(count)
    ]


async def _values(stand: Stand, plan: str) -> dict[str, float]:
    view = await runs.show(stand.client, plan)
    return {step.id: step.result.value for step in view.steps if step.result}
