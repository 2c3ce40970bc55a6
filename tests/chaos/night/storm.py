"""What is done to a round: faults at random moments, drawn from its seed, and an end to all of them.

Kills are SIGKILL. Whatever a fault breaks is whole again after some seconds; processes come back as a service manager
would bring them back.
"""

from __future__ import annotations

import asyncio
import json
import random
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.night.new_code import LAST, deploy
from tests.chaos.night.stand import Part, Stand

WEIGHTS = {
    "kill a worker": 14,
    "kill the server": 6,
    "kill both": 6,
    "stop a worker": 2,
    "freeze a worker": 2,
    "fill the disk": 1,
    "step the clock": 2,
    "slow network": 2,
    "cut network": 2,
    "half-open network": 2,
}
WATCHED_SECONDS = 15.0
FROZEN_SECONDS = (6.0, 9.0)
"""Longer than the heartbeat timeout: the server gives the step to another worker."""


@dataclass
class Storm:
    """Faults for a stand."""

    stand: Stand
    chance: random.Random
    log: Path
    kinds: dict[str, int]
    done: Counter[str] = field(default_factory=Counter)

    async def rage(self, seconds: float, *, new_code: bool) -> None:
        """One fault after the other for so many seconds. `new_code`: half-way, all workers come back with new code."""
        begun, is_new = time.monotonic(), not new_code
        while time.monotonic() - begun < seconds:
            if not is_new and time.monotonic() - begun > seconds / 2:
                is_new = True
                await self.deploy()
            names, weights = zip(*self.kinds.items(), strict=True)
            await self.inflict(self.chance.choices(names, weights)[0])
            await asyncio.sleep(self.chance.uniform(0.3, 2.0))

    async def inflict(self, kind: str) -> None:
        """One fault, from its beginning to its end."""
        faults: dict[str, Callable[[], Awaitable[None]]] = {
            "kill a worker": lambda: self.kill(kind, self._worker()),
            "kill the server": lambda: self.kill(kind, self.stand.parts["server"]),
            "kill both": lambda: self.kill(kind, self.stand.parts["server"], *self.stand.workers),
            "stop a worker": self._stop,
            "freeze a worker": self._freeze,
            "fill the disk": self._fill,
            "step the clock": self._step,
            "slow network": lambda: self._network(kind, f"slow {self.chance.randint(20, 300)}"),
            "cut network": lambda: self._network(kind, "cut"),
            "half-open network": lambda: self._network(kind, "hang"),
        }
        await faults[kind]()

    async def kill(self, what: str, *parts: Part) -> None:
        """kill -9, and back at once or after a pause. Half of the kills are watched: nothing else happens until a step
        has had its effect, so that it can be said how long that took.
        """
        names = [name for name, part in self.stand.parts.items() if part in parts and part.is_running]
        is_watched = self.chance.random() < 0.5
        killed = time.time()
        self._write(what, names, is_watched=is_watched)
        for part in parts:
            part.kill()
        await asyncio.sleep(0.0 if is_watched else self.chance.uniform(0.0, 1.0))
        for part in parts:
            part.start()
        while is_watched and time.time() - killed < WATCHED_SECONDS and not self._has_moved_since(killed):
            await asyncio.sleep(0.1)

    def _has_moved_since(self, moment: float) -> bool:
        """Whether a file of the workspace has changed since, by the file system's clock."""
        files = (path for path in self.stand.workspace.rglob("*") if path.is_file())
        return any(path.stat().st_mtime > moment for path in files)

    async def deploy(self, *, is_patched: bool = True, method: str = LAST) -> None:
        """Every worker is killed and comes back with new code."""
        code = await asyncio.to_thread(deploy, self.stand.folder / "new", is_patched=is_patched, method=method)
        workers = list(self.stand.workers)
        for part in workers:
            part.code = code
            part.environ = {**part.environ, "PYTHONPATH": str(code)}
        await self.kill("new code", *workers)

    def calm(self) -> None:
        """Everything is whole again."""
        self.stand.disk.clear()
        for service in self.stand.ports:
            self.stand.network(service, "pass")
        if self.stand.clock:
            self.stand.clock.step(0)
        for part in self.stand.parts.values():
            part.send(signal.SIGCONT)
            part.start()

    def _worker(self) -> Part:
        return self.chance.choice(self.stand.workers)

    async def _stop(self) -> None:
        self._write("stop a worker")
        worker = self._worker()
        await asyncio.to_thread(worker.terminate)
        worker.start()

    async def _freeze(self) -> None:
        self._write("freeze a worker")
        worker = self._worker()
        worker.send(signal.SIGSTOP)
        await asyncio.sleep(self.chance.uniform(*FROZEN_SECONDS))
        worker.send(signal.SIGCONT)

    async def _fill(self) -> None:
        disk = self.stand.disk
        places = self.chance.choice([[disk.workspace], [disk.root], [disk.workspace, disk.root]])
        self._write(f"fill the disk: {' and '.join(place.name for place in places)}")
        for place in places:
            await asyncio.to_thread(disk.fill, place)
        await asyncio.sleep(self.chance.uniform(2.0, 6.0))
        disk.clear()

    async def _step(self) -> None:
        seconds = self.chance.choice([-86_400, -3_600, -5, 5, 3_600, 86_400])
        self._write(f"step the clock by {seconds} s")
        assert self.stand.clock is not None
        self.stand.clock.step(seconds)

    async def _network(self, what: str, mode: str) -> None:
        service = self.chance.choice(list(self.stand.ports))
        self._write(f"{what}: {service}")
        self.stand.network(service, mode)
        await asyncio.sleep(self.chance.uniform(1.0, 6.0))
        self.stand.network(service, "pass")

    def _write(self, what: str, killed: list[str] | None = None, *, is_watched: bool = False) -> None:
        self.done[what.partition(":")[0].partition(" by ")[0]] += 1
        line = {"time": time.time(), "what": what, "killed": killed or [], "watched": is_watched}
        with self.log.open("a") as log:
            log.write(json.dumps(line) + "\n")
