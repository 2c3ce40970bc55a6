"""`plan prune` killed in the middle, and beside plans that work: what a plan needs is never lost."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest
from temporalio.client import Client

from plansurvive.features.upkeep.sweep import prune
from plansurvive.runtime.connect import connect, storage
from plansurvive.runtime.held import aside_of
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.storage import LocalDirectory
from plansurvive.runtime.value_store import ValueStore
from tests.chaos.conftest import Chaos, Killable
from tests.kit.driving import Started, count
from tests.kit.waiting import until

STRAYS = 8_000
DAY = timedelta(days=1)
LONG_AGO = 3 * 86_400


def age(*paths: Path) -> None:
    """Let files be three days old."""
    for path in paths:
        os.utime(path, (time.time() - LONG_AGO,) * 2)


def values(settings: Settings) -> set[Path]:
    return {path for path in (settings.state_dir / "values").glob("??/*") if path.is_file()}


def strays(settings: Settings) -> list[Path]:
    """Many old values that nothing refers to."""
    made = []
    for number in range(STRAYS):
        path = settings.state_dir / "values" / f"{number % 256:02x}" / f"{number:062x}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
        age(path)
        made.append(path)
    return made


async def with_big_value(chaos: Chaos) -> Started:
    """A plan that has read a big file, which is gone since, and waits for a person."""
    source = chaos.plans.workspace / "big.txt"
    source.write_text("b" * 100_000)
    read = {"id": "r", "tool": "read_file", "args": {"path": "big.txt"}}
    write = {"id": "w", "tool": "write_file", "args": {"path": "copy.txt", "content": "$r"}, "requiresApproval": True}
    started = await chaos.plans.start([read, write])
    await started.until_asked("w")
    source.unlink()
    run_id = (await started.handle.describe()).run_id
    await until(lambda: count(started.client, f"RunId = '{run_id}'"), "the run is listed")
    return started


@pytest.mark.slow
async def test_a_prune_that_is_killed_has_lost_nothing_that_a_plan_needs_and_the_next_one_ends_its_work(
    chaos: Chaos, tmp_path: Path
) -> None:
    await chaos.worker.up()
    settings = Settings.read(chaos.worker.environ)
    plan = await with_big_value(chaos)
    needed = values(settings)
    record = settings.state_dir / "runs" / plan.id.removeprefix("plan-") / "note.txt"
    gone = settings.state_dir / "runs" / "gone" / "SUMMARY.md"
    for path in (record, gone):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    loose = strays(settings)
    age(*needed, record, gone)

    command = [sys.executable, "-m", "plansurvive", "prune", "--older-than", "1d", "--records", "1d"]
    pruning = Killable(command, chaos.worker.environ, tmp_path / "prune.log")
    pruning.start()
    await until(lambda: not all(path.exists() for path in loose), "it removes", every=0.001)
    pruning.kill()
    left = [path for path in loose if path.exists()]
    assert left, "the prune had ended before it was killed"
    assert needed <= values(settings)
    assert gone.exists()

    await prune(await connect(settings), settings, older_than=DAY, records=DAY)
    assert values(settings) == needed
    assert (record.exists(), gone.exists()) == (True, False)
    await plan.approve("w")
    assert (await plan.ended())["status"] == "completed"
    assert (chaos.plans.workspace / "copy.txt").read_text() == "b" * 100_000


@pytest.mark.slow
async def test_a_value_that_a_killed_prune_held_is_read_and_put_back(settings: Settings) -> None:
    client, driver = await connect(settings), storage(settings)
    assert isinstance(driver, LocalDirectory)
    store = ValueStore(driver)
    found = await store.put('"wanted at that moment"')
    [path] = values(settings)
    path.rename(aside_of(path))  # as the prune leaves it that is killed before it looks whether anybody wants it
    assert await store.get(found) == "wanted at that moment"
    await prune(client, settings, older_than=DAY)
    assert path.exists()
    assert not aside_of(path).exists()


@pytest.mark.slow
async def test_plans_work_while_one_prune_follows_the_other(chaos: Chaos) -> None:
    """Each plan reads the same big file, so it wants again what prunes are about to remove."""
    await chaos.worker.up()
    settings = Settings.read(chaos.worker.environ)
    client = await connect(settings)
    ended = asyncio.Event()
    pruning = asyncio.create_task(_pruned(client, settings, ended))
    plans = [await with_big_value(chaos) for _ in range(4)]
    for plan in plans:
        await plan.approve("w")
    assert [(await plan.ended())["status"] for plan in plans] == ["completed"] * 4
    ended.set()
    assert await pruning > 0
    assert (chaos.plans.workspace / "copy.txt").read_text() == "b" * 100_000


async def _pruned(client: Client, settings: Settings, ended: asyncio.Event) -> int:
    """Prune until it is enough; the number of stray values that went."""
    removed = number = 0
    while not ended.is_set():
        number += 1
        stray = settings.state_dir / "values" / "aa" / f"{number:062x}"
        stray.parent.mkdir(parents=True, exist_ok=True)
        stray.write_bytes(b"x")
        age(stray)
        removed += (await prune(client, settings, older_than=timedelta(hours=1))).removed
    return removed
