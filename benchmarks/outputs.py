"""Long output of a command: stored while it is written, and written to a file, in memory that does not grow with it."""

from __future__ import annotations

import time

from benchmarks.bench import Bench
from benchmarks.stand import Stand
from benchmarks.tables import Table
from plansurvive.client import runs
from plansurvive.plans.run import PlanStatus

MEMORY = 100.0
"""Bar for the growth of the worker in MB."""


async def measure(bench: Bench) -> list[Table]:
    """Measure outputs of each size, which the next step writes to a file."""
    table = Table(
        title="Output of commands",
        columns=["output", "wall s", "worker grows by MB", "complete"],
        note="A command writes to stdout, and the next step writes that to a file. Bar: complete, and the worker grows"
        f" by less than {MEMORY:.0f} MB. The command runs unsandboxed where the machine has no sandbox.",
    )
    small = 10 if bench.quick else 1
    async with bench.stand() as stand:
        await _add(None, stand, 1_000_000)  # what a worker loads for its first command is not counted
        for size in (5_000_000, 200_000_000 // small, 1_000_000_000 // small):
            bench.say(f"{size:,} bytes")
            await _add(table, stand, size)
    return [table]


async def _add(table: Table | None, stand: Stand, size: int) -> None:
    command = f"head -c {size} /dev/urandom"
    steps = [
        {"id": "made", "tool": "run_command", "args": {"command": command}, "requiresApproval": False},
        {
            "id": "taken",
            "tool": "write_file",
            "args": {"path": f"copy{size}", "content": "$made.stdout"},
            "timeout": 600.0,
        },
    ]
    worker = stand.worker("plan")
    worker.forget_peak()
    before, began = worker.memory, time.perf_counter()
    handle = await stand.start("plan", steps)
    await handle.result()
    seconds, grown = time.perf_counter() - began, (worker.peak_memory - before) / 1e6
    view = await runs.show(stand.client, handle.id)
    whole = view.status is PlanStatus.COMPLETED and (stand.workspace / f"copy{size}").stat().st_size == size
    (stand.workspace / f"copy{size}").unlink()
    if table is not None:
        cells = (f"{size / 1e6:,.0f} MB", f"{seconds:.1f}", f"{grown:.0f}", "yes" if whole else "no")
        table.add(*cells, reached=whole and grown < MEMORY)
