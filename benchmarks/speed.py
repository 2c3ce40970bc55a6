"""Wall time, CPU and history events of PlanWorkflow compared with a workflow by hand on our worker, and a bare one."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks import graphs
from benchmarks.bench import Bench
from benchmarks.graphs import Steps
from benchmarks.sample import Sample, middle, ratio
from benchmarks.stand import KINDS, Stand
from benchmarks.tables import Table

WALL, CPU, EVENTS = 1.10, 1.5, 0.05
"""Bars: wall time and worker CPU relative to the hand-written workflow, and additional events per step."""
BARE = 1.25
"""Bar: wall time relative to the bare yardstick."""
Paired = dict[str, list[Sample]]


def workloads(quick: bool) -> dict[str, list[Steps]]:
    """The graphs by name; those of a list run concurrently."""
    small = 10 if quick else 1
    return {
        f"chain {200 // small}": [graphs.chain(200 // small)],
        f"fan-out and join {200 // small}": [graphs.fan_out(200 // small)],
        f"layered {1_000 // small}": [graphs.layered(1_000 // small)],
        f"10 KB references {200 // small}": [graphs.references(200 // small, 10_000)],
        f"{50 // small} plans of 20": [graphs.chain(10) + _renamed(graphs.fan_out(10))] * (50 // small),
    }


async def measure(bench: Bench) -> list[Table]:
    """Run each workload on all three, alternating."""
    table = Table(
        title="Speed",
        columns=["workload", "wall s", "by hand s", "bare s", "ratio", "to bare",
                 "worker CPU ms/step", "ratio ", "to bare ", "server CPU ms/step", "ratio  ", "to bare  ",
                 "events/step", "by hand", "bare", "bytes/step", "ratio   "],
        note=f"Bars: wall time {WALL:.2f} of by hand, {BARE:.2f} of bare, worker CPU {CPU}, events +{EVENTS} per step.",
    )  # fmt: skip
    async with bench.stand() as stand:
        for name, workload in workloads(bench.quick).items():
            bench.say(name)
            add(table, name, await paired(stand, workload, bench.repeats))
    return [table]


async def paired(stand: Stand, workload: list[Steps], repeats: int) -> Paired:
    """Run the same graphs on each, alternating (A B C, C B A, ...) after one warm-up round."""
    samples: Paired = {kind: [] for kind in KINDS}
    for turn in range(repeats + 1):
        for kind in KINDS if turn % 2 else reversed(KINDS):
            sample = await stand.run(kind, workload)
            if turn:
                samples[kind].append(sample)
    return samples


def add(table: Table, name: str, samples: Paired) -> None:
    """Add the row of one workload."""
    ours, theirs, bare = samples["plan"], samples["minimal"], samples["bare"]
    wall, worker = ratio(ours, theirs, _seconds), ratio(ours, theirs, _worker)
    to_bare = ratio(ours, bare, _seconds)
    events, by_hand = middle(ours, _events), middle(theirs, _events)
    table.add(
        name,
        f"{middle(ours, _seconds):.2f}",
        f"{middle(theirs, _seconds):.2f}",
        f"{middle(bare, _seconds):.2f}",
        f"{wall:.2f}",
        f"{to_bare:.2f}",
        f"{1_000 * middle(ours, _worker):.2f}",
        f"{worker:.2f}",
        f"{ratio(ours, bare, _worker):.2f}",
        f"{1_000 * middle(ours, _server):.2f}",
        f"{ratio(ours, theirs, _server):.2f}",
        f"{ratio(ours, bare, _server):.2f}",
        f"{events:.2f}",
        f"{by_hand:.2f}",
        f"{middle(bare, _events):.2f}",
        f"{middle(ours, _bytes):.0f}",
        f"{ratio(ours, theirs, _bytes):.2f}",
        reached=wall <= WALL and to_bare <= BARE and worker <= CPU and events <= by_hand + EVENTS,
    )


def _renamed(steps: Steps) -> Steps:
    return [{**step, "id": f"w{step['id']}", "dependsOn": [f"w{name}" for name in step["dependsOn"]]} for step in steps]


_seconds: Callable[[Sample], float] = lambda sample: sample.seconds  # noqa: E731
_worker: Callable[[Sample], float] = lambda sample: sample.worker_cpu / sample.steps  # noqa: E731
_server: Callable[[Sample], float] = lambda sample: sample.server_cpu / sample.steps  # noqa: E731
_events: Callable[[Sample], float] = lambda sample: sample.events / sample.steps  # noqa: E731
_bytes: Callable[[Sample], float] = lambda sample: sample.history_bytes / sample.steps  # noqa: E731
