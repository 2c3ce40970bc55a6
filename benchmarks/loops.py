"""A loop over many items as one step with `forEach`, compared with the same loop written by hand and with batches."""

from __future__ import annotations

import random
import time
import uuid
from statistics import median
from typing import Any, NamedTuple

from benchmarks.bench import Bench
from benchmarks.minimal import IN_FLIGHT, Loop
from benchmarks.stand import BARE, KINDS, Kind, Stand
from benchmarks.tables import Table

EMPTY, EVEN, UNEVEN = 1.10, 1.15, 1.10
"""Bars: time relative to the loop by hand; of even items relative to work / slots; of uneven ones to the window."""


class Way(NamedTuple):
    """One way to run a loop."""

    kind: Kind
    waves: bool = False


WAYS = {"plan": Way("plan"), "by hand": Way("minimal"), "bare": Way("bare"), "in batches": Way("minimal", True)}


async def measure(bench: Bench) -> list[Table]:
    """Run the same loops each way, alternating."""
    async with bench.stand() as stand:
        return [await _empty(bench, stand), await _waiting(bench, stand)]


async def _empty(bench: Bench, stand: Stand) -> Table:
    items = list(range(1_000 if bench.quick else 10_000))
    table = Table(
        title=f"Loop of {len(items)} items that do nothing",
        columns=["way", "wall s", "ratio to by hand", "to bare", "worker CPU s", "ratio", "to bare "],
        note=f"Bar: {EMPTY:.2f} of the loop by hand, in wall time.",
    )
    found: dict[str, list[tuple[float, float]]] = {kind: [] for kind in KINDS}
    for turn in range(bench.repeats + 1):
        for kind in KINDS if turn % 2 else reversed(KINDS):
            before = stand.worker(kind).cpu
            seconds = await run(stand, Way(kind), "noop", "number", items)
            if turn:
                found[kind].append((seconds, stand.worker(kind).cpu - before))
    wall, cpu = ({kind: median(pair[place] for pair in found[kind]) for kind in KINDS} for place in (0, 1))
    for way, kind in (("plan", KINDS[0]), ("by hand", KINDS[1]), ("bare", KINDS[2])):
        ratio = wall[kind] / wall["minimal"]
        reached = ratio <= EMPTY if kind == "plan" else None
        shares = [f"{cpu[kind] / cpu['minimal']:.2f}", f"{cpu[kind] / cpu['bare']:.2f}"]
        table.add(way, f"{wall[kind]:.2f}", f"{ratio:.3f}", f"{wall[kind] / wall['bare']:.3f}", f"{cpu[kind]:.2f}",
                  *shares, reached=reached)  # fmt: skip
    return table


async def _waiting(bench: Bench, stand: Stand) -> Table:
    count = 128 if bench.quick else 640
    rng = random.Random(11)
    uneven = [round(0.01 * 200 ** rng.random(), 4) for _ in range(count)]
    table = Table(
        title=f"Loop of {count} items that wait, {IN_FLIGHT} at once",
        columns=["items", "way", "wall s", "least possible s", "ratio", "ratio to by hand", "to bare"],
        note=f"Least possible: work / slots. Bars: {EVEN} of that for even items, {UNEVEN} of by hand for uneven ones.",
    )
    for name, items in (("2 s each", [2.0] * count), ("10 ms to 2 s", uneven)):
        least = sum(items) / IN_FLIGHT
        found: dict[str, list[float]] = {way: [] for way in WAYS}
        for _ in range(max(1, bench.repeats // 2)):
            for way, how in WAYS.items():
                found[way].append(await run(stand, how, "wait", "seconds", items))
        by_hand, bare = median(found["by hand"]), median(found["bare"])
        for way, seconds in found.items():
            wall = median(seconds)
            reached = wall / least <= EVEN if items is not uneven else wall / by_hand <= UNEVEN
            ratios = [f"{wall / base:.3f}" for base in (least, by_hand, bare)]
            table.add(name, way, f"{wall:.2f}", f"{least:.2f}", *ratios, reached=reached if way == "plan" else None)
    return table


async def run(stand: Stand, way: Way, tool: str, name: str, items: list[Any], **fields: Any) -> float:
    """Seconds of one loop from its start to its result. `fields`: of a plan."""
    began = time.perf_counter()
    if way.kind == "plan":
        rule = {"items": items, "maxParallel": IN_FLIGHT}
        each = {"id": "each", "tool": tool, "forEach": rule, "args": {name: "$item"}}
        handle = await stand.start("plan", [each], **fields)
        await handle.result()
    else:
        loop = Loop(workspace=str(stand.workspace), tool=tool, name=name, items=items, waves=way.waves)
        queue, name_of_run = f"bench-{way.kind}", f"loop-{uuid.uuid4().hex[:12]}"
        bare = way.kind in BARE
        client = stand.bare_client(way.kind) if bare else stand.client
        workflow = "BareLoop" if bare else "MinimalLoop"
        count = await client.execute_workflow(workflow, loop.model_dump(), id=name_of_run, task_queue=queue)
        if count != len(items):
            raise RuntimeError(f"{count} of {len(items)} items ran")
    return time.perf_counter() - began
