"""The worker's memory and CPU for a thousand plans that await approval."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from benchmarks.bench import Bench
from benchmarks.processes import Watched
from benchmarks.stand import Stand
from benchmarks.tables import Table
from plansurvive.client import runs
from plansurvive.client.runs import PlanView

MEMORY, CPU = 150_000, 0.02
"""Bars: bytes of worker memory per plan, and CPU in cores, more than an idle worker's, while all of them wait."""
STEPS = [{"id": "ask", "tool": "now", "requiresApproval": True}]


async def measure(bench: Bench) -> list[Table]:
    """Measure memory without and with the plans, CPU while they wait, memory of a new worker after a restart."""
    count, seconds = (50, 2.0) if bench.quick else (1_000, 20.0)
    table = Table(title=f"{count:,} idle plans", columns=["what", "value", "bar"])
    async with bench.stand() as stand:
        await _start(stand, 20)
        worker = stand.worker("plan")
        before = worker.memory
        bench.say(f"starting {count} plans")
        plans = await _start(stand, count)
        each = (worker.memory - before) / count
        table.add("worker memory per plan", f"{each / 1e3:.0f} kB", f"{MEMORY / 1e3:.0f} kB", reached=each <= MEMORY)
        share = await _cpu(worker, seconds)
        idle = await _cpu(stand.worker("minimal"), seconds)
        text = f"{100 * share:.2f} % of a core"
        table.add("worker CPU while they wait", text, f"{100 * CPU:.0f} % more than an idle worker",
                  reached=share <= idle + CPU)  # fmt: skip
        table.add("CPU of an idle worker", f"{100 * idle:.2f} % of a core", "")
        await stand.stop_worker("plan")
        await stand.start_worker("plan")
        again = stand.worker("plan").memory - before
        text = f"{again / 1e6:+.0f} MB against an idle one"
        table.add("memory of a new worker, same plans", text, "+10 MB", reached=again <= 10e6)
        view = await runs.show(stand.client, plans[-1])
        table.add("query of the last plan after that", str(view.steps[0].awaiting), "approval",
                  reached=view.steps[0].awaiting == "approval")  # fmt: skip
    return [table]


async def _start(stand: Stand, count: int) -> Sequence[str]:
    """Start plans and wait until each of them awaits approval; returns their ids."""
    plans: list[str] = []
    for _ in range(0, count, 50):
        batch = await asyncio.gather(*(stand.start("plan", STEPS) for _ in range(min(50, count))))
        views: Sequence[PlanView] = ()
        while not views or not all(view.steps[0].awaiting for view in views):
            await asyncio.sleep(0.1)
            views = await asyncio.gather(*(runs.show(stand.client, handle.id) for handle in batch))
        plans += [handle.id for handle in batch]
    return plans


async def _cpu(process: Watched, seconds: float) -> float:
    """CPU use of a process in cores, averaged over some seconds."""
    before = process.cpu
    await asyncio.sleep(seconds)
    return (process.cpu - before) / seconds
