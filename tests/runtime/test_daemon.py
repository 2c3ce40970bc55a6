"""Processes that outlive a command: found by their record, never confused with another, stopped for sure."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from plansurvive.runtime import daemon
from plansurvive.runtime.daemon import Process

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


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_the_beginning_is_in_ticks_since_boot_as_older_records_have_it() -> None:
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    assert daemon.began(os.getpid()) == fields[19]


def test_a_number_that_no_process_has_began_never() -> None:
    assert daemon.began(2**22 + 1) is None


def test_a_record_is_for_its_owner_only_and_replaced_as_a_whole(tmp_path: Path) -> None:
    for pid in (1, 2):
        Process(pid=pid, began="x").write(tmp_path / "x.json")
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]
    assert (tmp_path / "x.json").stat().st_mode & 0o777 == 0o600
