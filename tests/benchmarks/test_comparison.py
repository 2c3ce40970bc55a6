"""Every engine beside us still runs, waits, is killed, and goes on; what its ledger says is counted right.

Those that need packages of a registry belong to the night, and are skipped where these cannot be had.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from benchmarks import alternatives, graphs
from benchmarks.bench import Bench
from benchmarks.comparison.contender import Contender, Cost, memory_of
from benchmarks.comparison.contenders import ENTRIES, Entry, Wait
from benchmarks.comparison.kills import killed, steps_with
from benchmarks.comparison.ledgers import Judged, judge
from benchmarks.comparison.waits import waited
from benchmarks.graphs import Steps
from plansurvive.plans.definition.parsing import read_plan
from plansurvive.plans.model import Plan

STEPS = ["a", "b", "c", "d"]
BEFORE = ["start a", "start b", "end a", "start c"]
BY_THEMSELVES = ("a plan", "a workflow", "restate", "dbos")
"""Engines that continue once their process is started again; the others are told to."""


def test_only_steps_that_had_begun_are_begun_again_where_nothing_finished_is_lost() -> None:
    after = ["start b", "start c", "end b", "end c", "start d", "end d"]
    assert judge(BEFORE, after, STEPS) == Judged(in_flight=2, begun_again=2, done_again=0, lost=0)


def test_a_step_that_had_finished_and_begins_again_is_done_again() -> None:
    after = ["start a", "end a", "start b", "end b", "start c", "end c", "start d", "end d"]
    assert judge(BEFORE, after, STEPS) == Judged(in_flight=2, begun_again=2, done_again=1, lost=0)


def test_a_step_that_never_ended_is_lost() -> None:
    assert judge(BEFORE, ["start d"], STEPS) == Judged(in_flight=2, begun_again=0, done_again=0, lost=3)
    assert judge(BEFORE, [], STEPS).lost == 3


def test_the_graph_that_is_killed_is_a_plan() -> None:
    assert isinstance(read_plan({"steps": steps_with("ledger.txt", 40)}), Plan)


@asynccontextmanager
async def started(entry: Entry, folder: Path) -> AsyncIterator[Contender]:
    """The engine, started; skips the test if it cannot be had."""
    try:
        contender = await entry.make(folder)
    except RuntimeError as error:
        pytest.skip(f"{entry.name} cannot be had: {error}")
    try:
        await contender.start()
        yield contender
    finally:
        await contender.stop()


@pytest.mark.slow
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
async def test_an_engine_runs_a_graph_and_finishes_it_after_a_kill(
    entry: Entry, tmp_path: Path, temporal_binary: Path
) -> None:
    async with started(entry, tmp_path) as contender:
        cost = await contender.run("small", [graphs.layered(20), graphs.chain(5)])
        assert cost.wall > 0
        assert cost.cpu >= 0
        assert (await contender.run("turn", [graphs.chain(1)] * 3, in_turn=True)).wall > 0
        if entry.kills:
            once = "repeatable: false" in entry.name
            wait = 60.0 if entry.name.startswith(BY_THEMSELVES) and not once else 1.0
            found = await killed(contender, "cut", steps_with("cut.txt", 40), 15, everything=False, wait=wait)
            if once:
                assert (found.judged.begun_again, found.judged.done_again) == (0, 0)
                assert "PLAN_PARTIAL" in found.error
            else:
                assert found.by_itself == entry.name.startswith(BY_THEMSELVES)
                assert (found.error, found.completed, found.judged.lost) == ("", 40, 0)


@pytest.mark.slow
@pytest.mark.parametrize("entry", [entry for entry in ENTRIES if entry.waits], ids=lambda entry: entry.name)
async def test_runs_that_wait_end_when_their_answer_comes_after_everything_was_killed(
    entry: Entry, tmp_path: Path, temporal_binary: Path
) -> None:
    async with started(entry, tmp_path) as contender:
        found = await waited(contender, 4, 2, seconds=0.5, settle=0.5)
        assert (found.error, found.ended, found.answered) == ("", 2, 2)
        assert await contender.ended("runs", 4) == 2  # the others still wait
        assert found.busy >= 0


class Forgets(Contender):
    """Knows nothing of its runs once it was killed."""

    engine, state, has_server = "forgets 1.0", "memory", False

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.answered: dict[str, int] = {}

    @property
    def pids(self) -> list[int]:
        return [os.getpid()]

    @property
    def server_pids(self) -> list[int]:
        return []

    async def start(self) -> None:
        return

    async def stop(self) -> None:
        return

    async def begin(self, _name: str, _steps: Steps) -> None:
        return

    async def resume(self, _name: str, _steps: Steps) -> None:
        return

    async def restart(self, *, everything: bool) -> None:
        assert not everything

    async def run(self, _name: str, workload: list[Steps], *, in_turn: bool = False) -> Cost:
        return Cost(wall=len(workload) * (1.0 if in_turn else 0.5), cpu=0.0)

    async def kill(self, *, everything: bool) -> None:
        assert not everything
        self.answered.clear()

    async def result(self, _name: str, _steps: Steps) -> int:
        return 0

    def ledger(self, file: str) -> Path:
        return self.folder / file

    async def wait(self, name: str, _runs: int) -> None:
        self.answered[name] = 0

    async def answer(self, name: str, runs: int) -> None:
        if name in self.answered:
            self.answered[name] = runs

    async def ended(self, name: str, _runs: int) -> int:
        return self.answered.get(name, 0)


async def _forgets(folder: Path) -> Contender:
    return Forgets(folder)


async def test_a_run_that_does_not_end_after_its_answer_is_counted(tmp_path: Path) -> None:
    found = await waited(Forgets(tmp_path), 4, 2, seconds=0.01, settle=0.0, patience=0.2)
    assert (found.ended, found.answered) == (0, 2)
    assert "did not end" in found.error
    cells = alternatives.of_waits(Entry("forgets", _forgets, Wait("hope")), Forgets(tmp_path), found)
    assert cells[0] == "hope"
    assert cells[2] == "no server"
    assert cells[-3:] == ["no", "-", f"0 of 2 ({found.error})"]


async def test_runs_of_one_step_follow_one_another() -> None:
    bench = Bench(repeats=1, quick=True, say=print)
    wall, *_ = await alternatives.measure(bench, [Entry("forgets", _forgets, None, kills=False)])
    assert wall.columns[2] == "one step"
    assert wall.rows[0].cells[2] == "1000.00"


def test_memory_is_that_of_all_processes() -> None:
    assert memory_of([]) == 0
    assert memory_of([os.getpid()]) > 1_000_000


async def _unavailable(_: Path) -> Contender:
    raise RuntimeError("no registry | in reach")


async def test_an_engine_that_cannot_be_had_gets_a_row_that_says_why() -> None:
    tables = await alternatives.measure(
        Bench(repeats=1, quick=True, say=print), [Entry("missing", _unavailable, Wait("a promise"))]
    )
    assert len(tables) == 4
    for table in tables:
        (row,) = table.rows
        assert row.cells[:2] == ["missing", "no registry / in reach"]
        assert len(row.cells) == len(table.columns)


@pytest.mark.slow
async def test_the_comparison_fills_its_tables(temporal_binary: Path) -> None:
    tables = await alternatives.measure(Bench(repeats=1, quick=True, say=print), ENTRIES[:1])
    wall, cpu, kills, waits = tables
    assert [len(table.rows) for table in tables] == [1, 1, 2, 1]
    assert all(len(row.cells) == len(table.columns) for table in tables for row in table.rows)
    for table in (wall, cpu):
        assert all(float(cell) > 0 for cell in table.rows[0].cells[2:])
    assert [row.cells[-1] for row in kills.rows] == ["1 of 1", "1 of 1"]
    assert waits.rows[0].cells[-3] == "by itself"
    assert waits.rows[0].cells[-1] == "5 of 5"
