"""One round of a night: plans from a seed, a storm over them, a calm in which they must end, the checker's verdict."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tests.chaos.night import clock
from tests.chaos.night.disk import Disk
from tests.chaos.night.export import export
from tests.chaos.night.new_code import ROOT
from tests.chaos.night.people import People
from tests.chaos.night.plans import Planned, planned, script
from tests.chaos.night.stand import Stand
from tests.chaos.night.storm import WEIGHTS, Storm
from tests.kit.waiting import connected

CALM_SECONDS = 120.0
"""Time that plans have to end after the storm. A step waits a heartbeat timeout, an LLM request up to its own limit."""
PLANS_A_SECOND = 0.7


@dataclass
class Setup:
    """Where and how a round runs."""

    folder: Path
    temporal: Path
    has_disk: bool
    """This process has a mount namespace of its own."""
    seconds: float = 45.0
    """Duration of the storm."""
    calm: float = CALM_SECONDS
    workers: int = 2
    is_durable: bool = True
    plans: Callable[[Path], Sequence[Planned]] | None = None
    """Makes the plans, given the workspace, instead of random ones."""
    attack: Callable[[Storm], Awaitable[None]] | None = None
    """What is done to them, instead of a storm."""
    decides_late: bool = False
    """People decide in the calm only."""

    @property
    def kinds(self) -> dict[str, int]:
        """The faults that can be made here."""
        cannot = {"fill the disk": not self.has_disk, "step the clock": bool(clock.missing())}
        return {kind: weight for kind, weight in WEIGHTS.items() if not cannot.get(kind)}


@dataclass
class Verdict:
    """What the checker said of a round, and what was done to it."""

    seed: int
    said: Mapping[str, Any]
    faults: Counter[str] = field(default_factory=Counter)
    folder: Path = Path()

    @property
    def is_good(self) -> bool:
        """Whether nothing was found."""
        return not self.said["findings"]


async def run(seed: int, setup: Setup) -> Verdict:
    """One whole round. The stand is gone afterwards; the record stays in `setup.folder`."""
    chance = random.Random(seed)
    stand = _stand(setup, chance)
    stand.prepare(setup.workers)
    plans = setup.plans(stand.workspace) if setup.plans else _random(seed, setup, stand.workspace)
    _promise(setup.folder, plans)
    storm = Storm(stand, chance, setup.folder / "storm.jsonl", setup.kinds)
    new_code = chance.random() < 0.5
    attack = setup.attack or partial(Storm.rage, seconds=setup.seconds, new_code=new_code)
    try:
        await stand.up()
        people = await _people(stand, chance)
        keeping = asyncio.create_task(_keep(stand))
        try:
            starting = asyncio.create_task(_start(people, plans, setup))
            await attack(storm)
            storm.calm()
            await starting
            await calmed(people, setup.calm)
        finally:
            keeping.cancel()
        await export(people.client, setup.folder / "histories")
        said = await checked(setup.folder, stand.workspace)
        if said["findings"]:
            await asyncio.to_thread(_save, stand, setup.folder)
    finally:
        stand.down()
        stand.disk.unmount()
    return Verdict(seed, said, storm.done, setup.folder)


async def calmed(people: People, seconds: float) -> None:
    """Wait until every plan has ended, or the time is over; people go on deciding."""
    deadline = time.monotonic() + seconds
    while await people.running() and time.monotonic() < deadline:
        await people.look()
        await asyncio.sleep(0.5)


async def checked(folder: Path, workspace: Path) -> dict[str, Any]:
    """The verdict of the checker, a process of its own."""
    command = [sys.executable, "-m", "tests.chaos.checker", str(folder), str(workspace)]
    done = await asyncio.to_thread(subprocess.run, command, cwd=ROOT, text=True, capture_output=True)
    assert done.returncode in (0, 1), done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def _stand(setup: Setup, chance: random.Random) -> Stand:
    setup.folder.mkdir(parents=True, exist_ok=True)
    if setup.attack:  # nothing is left to chance
        return Stand(
            setup.folder, Disk(setup.folder / "disk", setup.has_disk), setup.temporal, is_durable=setup.is_durable
        )
    settings = {"PLANS_MAX_ACTIVITIES": chance.choice(["2", "8", "100"])}  # with two slots, steps queue up
    clock_of = None if clock.missing() else clock.Clock(setup.folder)
    disk = Disk(setup.folder / "disk", setup.has_disk)
    return Stand(setup.folder, disk, setup.temporal, clock_of, settings, has_bucket=chance.random() < 0.4)


def _random(seed: int, setup: Setup, workspace: Path) -> list[Planned]:
    count = max(4, round(setup.seconds * PLANS_A_SECOND))
    return [planned(seed, number, workspace) for number in range(count)]


def _promise(folder: Path, plans: Sequence[Planned]) -> None:
    (folder / "promises.json").write_text(json.dumps([plan.promise for plan in plans], indent=1))
    (folder / "llm.json").write_text(script(plans))


async def _people(stand: Stand, chance: random.Random) -> People:
    client = await connected(stand.address)
    return People(client, str(stand.workspace), random.Random(chance.random()))


async def _keep(stand: Stand) -> None:
    while True:
        stand.keep()
        await asyncio.sleep(0.3)


async def _start(people: People, plans: Sequence[Planned], setup: Setup) -> None:
    """Start the plans: a third at once, the others one by one; and decide what they ask."""
    begun, pause = len(plans) // 3, setup.seconds / len(plans)
    for number, plan in enumerate(plans):
        await people.start(plan)
        if number >= begun and not setup.decides_late:
            await people.look()
            await asyncio.sleep(pause)


def _save(stand: Stand, folder: Path) -> None:
    """Keep the files of a round with findings: the small disk goes with it."""
    subprocess.run(["cp", "-r", str(stand.disk.root), str(folder / "found")], check=False)
