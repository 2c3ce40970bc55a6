"""Processes that outlive a command: found by their record, never confused with another, stopped for sure."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from runtime import daemon
from runtime.daemon import Process

WAIT = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"]
STUBBORN = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)",
]


async def started(command: list[str], log: Path) -> Process:
    pid, began = daemon.start(command, log, os.environ)
    while not daemon.tail(log):
        await asyncio.sleep(0.01)
    return Process(pid=pid, began=began)


async def test_a_recorded_process_is_found_until_it_is_stopped(tmp_path: Path) -> None:
    process = await started(WAIT, tmp_path / "x.log")
    process.write(tmp_path / "x.json")
    assert Process.read(tmp_path / "x.json") == process
    await process.stop(grace=10)
    assert Process.read(tmp_path / "x.json") is None


async def test_a_process_that_will_not_listen_is_ended_after_its_grace(tmp_path: Path) -> None:
    process = await started(STUBBORN, tmp_path / "x.log")
    await process.stop(grace=0.1)
    assert not process.is_alive()


async def test_a_process_id_used_again_is_not_mistaken_for_the_recorded_process(tmp_path: Path) -> None:
    Process(pid=os.getpid(), began="long ago").write(tmp_path / "x.json")
    assert Process.read(tmp_path / "x.json") is None


def test_a_missing_damaged_or_foreign_record_counts_as_none(tmp_path: Path) -> None:
    record = tmp_path / "x.json"
    for text in (None, "", "{", "[]", '{"pid": "x"}'):
        if text is not None:
            record.write_text(text)
        assert Process.read(record) is None


def test_a_zombie_does_not_count_as_alive() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert daemon.began(child.pid) is None
    child.wait()


async def test_one_holder_of_a_lock_at_a_time(tmp_path: Path) -> None:
    inside = 0

    async def enter() -> None:
        nonlocal inside
        async with daemon.lock(tmp_path / "lock"):
            inside += 1
            assert inside == 1
            await asyncio.sleep(0.01)
            inside -= 1

    await asyncio.gather(*(enter() for _ in range(5)))


async def test_a_lock_that_somebody_holds_is_waited_for_only_so_long(tmp_path: Path) -> None:
    async with daemon.lock(tmp_path / "lock"):
        with (tmp_path / "lock").open("rb") as other:
            assert not await daemon.take_lock(other.fileno(), 0.1)
    with (tmp_path / "lock").open("rb") as other:
        assert await daemon.take_lock(other.fileno(), 0.1)
