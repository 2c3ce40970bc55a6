"""Bounded waiting: polling for a condition; locks between processes, threads and tasks."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from plansurvive.runtime.base.wait import locked, locked_async, try_lock, until

HOLD = "import sys; from pathlib import Path; from plansurvive.runtime.base.wait import locked\n"
HOLD += "with locked(Path(sys.argv[1]), 5): print('held', flush=True); sys.stdin.read()"


async def test_the_first_true_value_is_returned() -> None:
    values = iter([0, None, "", 7, 8])
    assert await until(lambda: next(values), every=0) == 7
    assert next(values) == 8


async def test_an_async_look_is_awaited() -> None:
    values = iter([0, 3])

    async def look() -> int:
        return next(values)

    assert await until(look, every=0) == 3


async def test_there_is_a_look_however_short_the_time() -> None:
    assert await until(lambda: True, seconds=0)


async def test_a_condition_that_stays_false_times_out() -> None:
    with pytest.raises(TimeoutError, match="still false"):
        await until(lambda: False, seconds=0.02, every=0.01)


async def test_an_error_of_the_look_ends_the_wait() -> None:
    def look() -> bool:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await until(look)


async def test_one_task_holds_a_lock_at_a_time(tmp_path: Path) -> None:
    inside = 0

    async def enter() -> None:
        nonlocal inside
        async with locked_async(tmp_path / "lock"):
            inside += 1
            assert inside == 1
            await asyncio.sleep(0.01)
            inside -= 1

    await asyncio.gather(*(enter() for _ in range(5)))


def test_one_thread_holds_a_lock_at_a_time(tmp_path: Path) -> None:
    inside: list[int] = []
    most: list[int] = []

    def enter() -> None:
        with locked(tmp_path / "lock", 30):
            inside.append(1)
            most.append(len(inside))
            threading.Event().wait(0.01)
            inside.pop()

    threads = [threading.Thread(target=enter) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 5


async def test_the_wait_for_a_lock_ends_after_its_time(tmp_path: Path) -> None:
    async with locked_async(tmp_path / "lock"):
        with pytest.raises(TimeoutError, match="held its lock"), locked(tmp_path / "lock", 0.05):
            pass
        with pytest.raises(TimeoutError):
            async with locked_async(tmp_path / "lock", 0.05):
                pass
    with locked(tmp_path / "lock", 0):
        pass


def test_the_wait_for_a_lock_ends_when_it_is_stopped(tmp_path: Path) -> None:
    tries = iter([False, False, True])
    with (
        locked(tmp_path / "lock", 0),
        pytest.raises(TimeoutError),
        locked(tmp_path / "lock", 1e6, lambda: next(tries)),
    ):
        pass
    assert not list(tries)


async def test_a_cancelled_task_waits_no_longer(tmp_path: Path) -> None:
    async with locked_async(tmp_path / "lock"):
        task = asyncio.create_task(locked_async(tmp_path / "lock").__aenter__())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


def test_the_death_of_its_holder_frees_a_lock(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "lock")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout
    assert holder.stdout.readline() == b"held\n"
    with (tmp_path / "lock").open("rb") as other:
        assert not try_lock(other.fileno())
        holder.kill()
        holder.communicate()
        assert try_lock(other.fileno())
