"""`python -m benchmarks.fair_shares`: a small owner's plans beside 10,000 queued ones of a big owner.

Each plan is one step that takes five seconds; those of the big owner take half to one and a half of that, so that slots
become free one by one. The small owner starts a plan every second, once with the queue empty and once behind the
other's. Needs nothing but the embedded server's program; prints the times and how often p95 is that of alone, beside
what it would be if handing out a task took no time at all. `--unfair` is the control.

With two owners, each has a share of half the slots: one of its plans every half second (20 slots, five seconds). One
who asks for that much (`--every 0.5`) uses its share up, and what every task costs beside its five seconds adds up in
its queue: its times then grow with the number of plans, however tasks are handed out.

A small owner who asks for all of its share waits however tasks are handed out (p95 1.58 of alone, of which the wait for
a slot is 1.5 s), so a plan starts every second by default.
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter

from benchmarks.leaving import leave
from plansurvive.client import runs
from plansurvive.plans.model.shares import Fairness
from plansurvive.plans.run import Options
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.temporal_binary import find_temporal
from tests.kit.servers import development_server
from tests.kit.waiting import connected

ROOT = Path(__file__).parent.parent
SECONDS, SLOTS = 5.0, 20
PATIENCE = 180.0
"""Seconds that the small owner's plans may take beside the others."""


async def one(client: Client, workspace: Path, owner: str, seconds: float, *, waits: bool) -> float:
    """Start a plan; the seconds until its end, if it is waited for."""
    begun = time.monotonic()
    step = {"id": "a", "tool": "work", "args": {"name": owner, "seconds": seconds}}
    options = Options(workspace=str(workspace), fairness=Fairness(key=owner))
    started = await runs.start(client, {"steps": [step]}, options=options, name=owner)
    if waits:
        await client.get_workflow_handle(started.workflow_id).result()
    return time.monotonic() - begun


async def small(client: Client, workspace: Path, number: int, every: float) -> list[float]:
    """The times of the small owner's plans, one every so many seconds, in ascending order. Raises TimeoutError."""
    tasks = []
    for _ in range(number):
        tasks.append(asyncio.create_task(one(client, workspace, "small", SECONDS, waits=True)))
        await asyncio.sleep(every)
    async with asyncio.timeout(PATIENCE):
        return sorted(await asyncio.gather(*tasks))


async def fill(client: Client, workspace: Path, number: int) -> None:
    """Start the big owner's plans."""
    chance, at_once = random.Random(1), asyncio.Semaphore(50)

    async def start() -> None:
        async with at_once:
            await one(client, workspace, "big", SECONDS * chance.uniform(0.5, 1.5), waits=False)

    await asyncio.gather(*(start() for _ in range(number)))


@contextmanager
def worker(address: str, place: Path, workspace: Path) -> Iterator[None]:
    """A worker process."""
    environ = {
        **os.environ, "TEMPORAL_ADDRESS": address, "PLANS_STATE_DIR": str(place / "state"), "PLANS_UNDO": "off",
        "PLANS_TOOLS": str(ROOT / "tests/kit/ledger_tools.py"), "PLANS_MAX_ACTIVITIES": str(SLOTS),
        "PLANS_WORKSPACE": str(workspace), "PYTHONPATH": str(ROOT),
    }  # fmt: skip
    with (place / "worker.log").open("a") as log:
        process = subprocess.Popen([sys.executable, str(ROOT / "worker.py")], env=environ, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.kill()
        process.wait()


async def measure(queued: int, number: int, every: float, *, fair: bool) -> None:
    """Measure, and print."""
    binary = await find_temporal(Settings.read(os.environ), print)
    dynamic = () if fair else ("matching.enableFairness=false",)
    with tempfile.TemporaryDirectory() as name:
        place, workspace = Path(name), Path(name, "workspace")
        workspace.mkdir()
        async with development_server(binary, place, *dynamic) as server:
            client = await connected(server.address, data_converter=pydantic_data_converter)
            with worker(server.address, place, workspace):
                await one(client, workspace, "small", 0.0, waits=True)
                alone = await small(client, workspace, number, every)
            print(f"alone: {said(alone)}", flush=True)
            await fill(client, workspace, queued)
            with worker(server.address, place, workspace):
                await asyncio.sleep(10)  # what the big owner has in flight is then what it has for minutes
                try:
                    beside = await small(client, workspace, number, every)
                except TimeoutError:
                    print(f"beside {queued:,} queued plans: not within {PATIENCE:g} s")
                    return
            print(f"beside {queued:,} queued plans: {said(beside)}; p95 is {p(95, beside) / p(95, alone):.2f} of alone")
            least = sorted(ideal(number, every, seed) for seed in range(20))
            print(f"where tasks cost no time: {p(50, least):.2f} of alone, {least[0]:.2f} to {least[-1]:.2f} by chance")


def ideal(number: int, every: float, seed: int) -> float:
    """How often p95 is that of alone if each free slot takes a task at once, of the two owners in turn."""
    chance, at, seen = random.Random(seed), 0.0, 0
    free = [SECONDS * chance.uniform(0.5, 1.5) for _ in range(SLOTS)]
    heapq.heapify(free)
    waiting, times, turn = list[float](), list[float](), 0
    while len(times) < number:
        at = heapq.heappop(free)
        while seen < number and 2 * SECONDS + every * seen <= at:
            waiting.append(2 * SECONDS + every * seen)
            seen += 1
        if waiting and turn <= 0:
            times.append(at + SECONDS - waiting.pop(0))
            heapq.heappush(free, at + SECONDS)
            turn = 1
        else:
            heapq.heappush(free, at + SECONDS * chance.uniform(0.5, 1.5))
            turn = 0
    return p(95, sorted(times)) / SECONDS


def p(percent: int, times: Sequence[float]) -> float:
    """A percentile of ascending times."""
    return times[min(len(times) - 1, len(times) * percent // 100)]


def said(times: Sequence[float]) -> str:
    """Percentiles in words."""
    return f"p50 {p(50, times):.2f} s, p95 {p(95, times):.2f} s, most {times[-1]:.2f} s"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queued", type=int, default=10_000)
    parser.add_argument("--small", type=int, default=60)
    parser.add_argument("--every", type=float, default=1.0, help="seconds between the small owner's plans")
    parser.add_argument("--unfair", action="store_true")
    given = parser.parse_args()
    asyncio.run(measure(given.queued, given.small, given.every, fair=not given.unfair))
    leave(0)
