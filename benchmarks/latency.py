"""How long people and programs wait: from an approval to the step's start, from a step's end to its watcher.

Clocks are of one machine: tools tell the time of day at which they started or ended.
"""

from __future__ import annotations

import asyncio
import time
from statistics import median, quantiles
from typing import Any

from benchmarks.bench import Bench
from benchmarks.stand import Kind, Stand
from benchmarks.tables import Table
from client import runs

APPROVAL, WATCHER = 25.0, 50.0
"""Milliseconds, at most, in the middle."""
PAUSE = 0.15
"""Seconds between two approvals: each finds the plan at rest."""


async def measure(bench: Bench) -> list[Table]:
    """Both waits, on a server that keeps its data on disk; the first one also of a workflow by hand."""
    count = 5 if bench.quick else 40
    columns = ["what", "p50 ms", "p95 ms", "by hand p50 ms", "bar (p50)"]
    table = Table(title="Latency", columns=columns, note=f"{count} of each.")
    async with bench.stand(durable=True) as stand:
        by_hand = f"{median(await _approvals(stand, count, 'minimal')):.1f}"
        for name, bar, found, theirs in (
            ("signal sent to activity started", APPROVAL, await _approvals(stand, count, "plan"), by_hand),
            ("step ended to watcher told", WATCHER, await _watching(stand, count), ""),
        ):
            middle = median(found)
            last = f"{quantiles(found, n=20)[-1]:.1f}"
            table.add(name, f"{middle:.1f}", last, theirs, f"{bar:.0f}", reached=middle <= bar)
    return [table]


async def _approvals(stand: Stand, count: int, kind: Kind) -> list[float]:
    steps: list[dict[str, Any]] = [{"id": f"s{n}", "tool": "now", "requiresApproval": True} for n in range(count)]
    handle = await stand.start(kind, steps, by_hand="MinimalApprovals")
    while kind == "plan" and not (await runs.show(stand.client, handle.id))["pending"]:
        await asyncio.sleep(PAUSE)
    sent: dict[str, float] = {}
    for step in steps:
        await asyncio.sleep(PAUSE)  # nobody asks the plan anything meanwhile: that is the other row's business
        sent[step["id"]] = time.time()
        await handle.signal("approve", {"stepId": step["id"]})
    ended = await handle.result()
    values = await _values(stand, handle.id) if kind == "plan" else ended
    return [1_000 * (values[step] - moment) for step, moment in sent.items()]


async def _watching(stand: Stand, count: int) -> list[float]:
    steps: list[dict[str, Any]] = []
    for index in range(count):
        before = [f"s{index - 1}"] if index else []
        steps.append({"id": f"s{index}", "tool": "wait", "args": {"seconds": 0.15}, "dependsOn": before})
    handle = await stand.start("plan", steps)
    told: dict[str, float] = {}
    async for event in runs.watch(stand.client, handle.id):
        if event.status == "completed" and event.step_id:
            told[event.step_id] = time.time()
    values = await _values(stand, handle.id)
    return [1_000 * (moment - values[step]) for step, moment in told.items()]


async def _values(stand: Stand, plan: str) -> dict[str, float]:
    view = await runs.show(stand.client, plan)
    return {step["id"]: step["result"]["value"] for step in view["steps"] if step.get("result")}
