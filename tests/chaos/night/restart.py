"""Many plans that wait for people, and a restart of everything: each still waits then, and ends when it is decided."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from tests.chaos.night.plans import Planned, waiting
from tests.chaos.night.rounds import Setup
from tests.chaos.night.storm import Storm
from tests.kit.waiting import until

PATIENCE = 900.0
"""Seconds until so many plans wait, and until they have ended."""


def restarted(base: Setup, count: int) -> Setup:
    """A round with so many waiting plans, in which server and workers are killed once all of them wait."""
    return replace(
        base, plans=partial(_plans, count), attack=everything, decides_late=True, calm=PATIENCE, seconds=float(count)
    )


async def everything(storm: Storm) -> None:
    """kill -9 of server and workers once every plan has done its first step and awaits a person."""
    await until(lambda: _begun(storm), "every plan waits", patience=PATIENCE, every=1.0)
    await asyncio.sleep(5.0)  # what is acknowledged by then must survive; what is not is done again
    await storm.kill("kill both", storm.stand.parts["server"], *storm.stand.workers)


def _plans(count: int, workspace: Path) -> Sequence[Planned]:
    return [waiting(number, workspace) for number in range(count)]


def _begun(storm: Storm) -> bool:
    return all("before" in path.read_text() for path in storm.stand.workspace.glob("w*/log.log"))
