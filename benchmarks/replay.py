"""Replay time: how long a worker takes to load a plan that it does not have cached."""

from __future__ import annotations

import time
from statistics import median

from temporalio.worker import Replayer, UnsandboxedWorkflowRunner

from benchmarks import graphs
from benchmarks.bare import BareGraph
from benchmarks.bench import Bench
from benchmarks.graphs import Steps
from benchmarks.serve import WORKFLOWS
from benchmarks.stand import Kind, Stand
from benchmarks.tables import Table


async def measure(bench: Bench) -> list[Table]:
    """Measure a chain and a layered graph, each way."""
    table = Table(
        title="Replay",
        columns=["graph", "events", "replay s", "events/s", "by hand s", "ratio", "bare s", "to bare"],
    )
    size = 100 if bench.quick else 1_000
    async with bench.stand() as stand:
        for name, steps in ((f"chain {size // 5}", graphs.chain(size // 5)), (f"layered {size}", graphs.layered(size))):
            events, ours = await _replayed(stand, "plan", steps, bench.repeats)
            _, theirs = await _replayed(stand, "minimal", steps, bench.repeats)
            _, bare = await _replayed(stand, "bare", steps, bench.repeats)
            others = [figure for each in (theirs, bare) for figure in (f"{each:.2f}", f"{ours / each:.2f}")]
            table.add(name, f"{events:,}", f"{ours:.2f}", f"{events / ours:,.0f}", *others)
    return [table]


async def _replayed(stand: Stand, kind: Kind, steps: Steps, repeats: int) -> tuple[int, float]:
    """Number of history events of a run, and the median seconds of its replay."""
    handle = await stand.start(kind, steps)
    await handle.result()
    history = await handle.fetch_history()
    replayer = Replayer(
        workflows=[BareGraph] if kind == "bare" else WORKFLOWS[kind],
        data_converter=(stand.plain if kind == "bare" else stand.client).data_converter,
        workflow_runner=UnsandboxedWorkflowRunner(),
    )
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        await replayer.replay_workflow(history)
        seconds.append(time.perf_counter() - began)
    return len(history.events), median(seconds)
