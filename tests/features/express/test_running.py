"""A segment that runs in a worker: side by side, kept in the journal, and killed."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from plansurvive.features.express.journal import Journal, Superseded
from plansurvive.features.express.model import Failed, SegmentEnd
from plansurvive.features.express.running import Left, Make, Running
from plansurvive.features.express.segment import Made, Segment
from plansurvive.plans.activity_io import Attempt, Facts, Return
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.run import Run
from tests.features.express.dying import ASKED, QUICK, SEGMENT
from tests.kit.waiting import until
from tests.plans.building import NOW
from tests.plans.flow.player import note, plan

STEPS = 600


@contextmanager
def attempt(state: Path, number: int) -> Iterator[subprocess.Popen[str]]:
    """An attempt of a segment in a process of its own."""
    command = [sys.executable, "-m", "tests.features.express.dying", str(state), str(STEPS), str(number)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield process


def again(first: Path, second: Path) -> tuple[list[str], Counter[str], list[str]]:
    """Kill an attempt in the middle and make another one: what had ended, how often each was called, the values."""
    ended = list[str]()
    with attempt(first, 1) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "is under way" in line:
                break
            ended.append(line.strip())
        process.kill()
    assert ended == [f"s{index}" for index in range(STEPS // 2)]
    second.mkdir(exist_ok=True)
    with attempt(second, 2) as process:
        assert process.stdout is not None
        lines = process.stdout.read().splitlines()
    calls = Counter(name for each in {first, second} for name in (each / "ledger").read_text().split())
    values: list[str] = json.loads(lines[-1])
    return ended, calls, values


def values_of_all() -> list[str]:
    """As the chain gives them without a kill."""
    found = ["0"]
    for index in range(1, STEPS):
        found.append(f"{found[-1]}.{index % 10}"[-12:])
    return found


def test_no_step_that_had_ended_runs_twice_on_the_same_state_directory(tmp_path: Path) -> None:
    ended, calls, values = again(tmp_path, tmp_path)
    assert [name for name in ended if calls[name] != 1] == []
    assert [name for name, times in calls.items() if times > 1] == [f"s{STEPS // 2}"]  # it was under way
    assert (len(calls), values) == (STEPS, values_of_all())


def test_control_with_another_journal_all_of_them_do(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    ended, calls, values = again(tmp_path / "one", tmp_path / "other")
    assert all(calls[name] == 2 for name in ended)
    assert values == values_of_all()


def quick(*steps: dict[str, Any], **fields: Any) -> Run:
    """A run of a plan whose tools are quick."""
    return plan(*steps, facts=Facts(tools=QUICK, workspace="/w", parts=ASKED), **fields)


async def run(state: Path, plan_run: Run, make: Make, number: int = 1, **more: Any) -> SegmentEnd:
    """An attempt of the run's first segment."""
    schedule = Schedule(plan_run)
    schedule.begin(NOW)
    with Journal(state) as journal:
        running = Running(Segment(schedule, NOW, **more), make, lambda: NOW, journal, SEGMENT, number)
        return SegmentEnd.model_validate_json(await running.end())


async def text_of(made: Made) -> Return:
    """What the tool `note` gives."""
    return Return(value=made.filled.args["text"], duration=1.0)


def values(end: SegmentEnd) -> dict[str, Any]:
    """The values of its calls, in the order in which they ended."""
    return {
        each.step_id: each.returned.value if each.returned else each.failed and each.failed.attempt.code
        for each in end.calls
    }


async def test_calls_run_side_by_side_and_none_waits_for_those_that_it_does_not_need(tmp_path: Path) -> None:
    released = asyncio.Event()

    async def make(made: Made) -> Return:
        if made.step.id == "slow":
            await released.wait()
        elif made.step.id == "last":
            released.set()
        return await text_of(made)

    end = await run(tmp_path, quick(note("slow", 1), note("a", 2), note("b", "$a"), note("last", "$b")), make)
    assert values(end) == {"slow": 1, "a": 2, "b": 2, "last": 2}
    assert list(values(end))[:2] == ["a", "b"]


async def test_a_failure_is_told_and_attempted_again_with_the_segment(tmp_path: Path) -> None:
    calls = list[str]()

    async def make(made: Made) -> Return | Failed:
        calls.append(made.step.id)
        if made.step.id == "b" and calls.count("b") == 1:
            return Failed(error="it broke", attempt=Attempt(number=1, began=NOW, code="BROKEN", error="it broke"))
        return await text_of(made)

    steps = (note("a", 1), note("b", "$a"), note("c", "$b"))
    assert values(await run(tmp_path, quick(*steps), make)) == {"a": 1, "b": "BROKEN"}
    assert values(await run(tmp_path, quick(*steps), make, 2)) == {"a": 1, "b": 1, "c": 1}
    assert calls == ["a", "b", "b", "c"]


async def test_an_outcome_of_another_call_is_not_taken(tmp_path: Path) -> None:
    assert values(await run(tmp_path, quick(note("a", 1), note("b", "$a")), text_of)) == {"a": 1, "b": 1}
    assert values(await run(tmp_path, quick(note("a", 2), note("b", "$a")), text_of, 2)) == {"a": 2, "b": 2}
    assert values(await run(tmp_path, quick(note("a", 2), note("b", "$a")), text_of, 3)) == {"a": 2, "b": 2}


async def test_a_zombie_ends_with_the_first_outcome_that_it_would_keep_and_cancels_its_calls(tmp_path: Path) -> None:
    cancelled = list[str]()

    async def make(made: Made) -> Return:
        if made.step.id == "long":
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append("long")
                raise
        with Journal(tmp_path) as other:
            other.begin(SEGMENT, 2)
        return await text_of(made)

    with pytest.raises(Superseded):
        await run(tmp_path, quick(note("long"), note("a", 1), note("b", "$a")), make)
    assert cancelled == ["long"]
    with Journal(tmp_path) as journal:
        assert journal.begin(SEGMENT, 3) == {}


async def test_a_journal_that_another_process_has_locked_holds_up_nothing_else(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal, closing(sqlite3.connect(journal.path, isolation_level=None)) as other:

        async def make(made: Made) -> Return:
            other.execute("BEGIN IMMEDIATE")
            return await text_of(made)

        work = asyncio.create_task(run(tmp_path, quick(note("a", 1)), make))
        await until(lambda: other.in_transaction, "it is locked")
        assert await asyncio.wait([work], timeout=0.1) == (set(), {work})
        other.execute("COMMIT")
        assert values(await work) == {"a": 1}


async def test_what_is_no_failure_of_a_call_ends_the_attempt(tmp_path: Path) -> None:
    async def make(made: Made) -> Return:
        if made.step.id == "b":
            raise OSError("no more files")
        return await text_of(made)

    with pytest.raises(OSError, match="no more files"):
        await run(tmp_path, quick(note("a", 1), note("b", "$a")), make)
    assert values(await run(tmp_path, quick(note("a", 1), note("b", "$a")), text_of, 2)) == {"a": 1, "b": 1}


async def test_a_call_that_is_not_made_here_is_left_and_others_go_on(tmp_path: Path) -> None:
    async def make(made: Made) -> Return | Left:
        return Left("it waits for a limit") if made.step.id == "b" else await text_of(made)

    end = await run(tmp_path, quick(note("a", 1), note("b", "$a"), note("c", "$a"), note("d", "$b")), make)
    assert values(end) == {"a": 1, "b": None, "c": 1}
    assert {each.step_id: each.left for each in end.calls if each.left} == {"b": "it waits for a limit"}
