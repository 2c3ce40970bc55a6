"""Every engine beside us still runs, is killed, and goes on; what its ledger says is counted right.

Those that need packages of a registry belong to the night, and are skipped where these cannot be had.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import alternatives, graphs
from benchmarks.bench import Bench
from benchmarks.comparison.contender import Contender
from benchmarks.comparison.contenders import ENTRIES, Entry
from benchmarks.comparison.kills import killed, steps_with
from benchmarks.comparison.ledgers import Judged, judge
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


@pytest.mark.slow
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
async def test_an_engine_runs_a_graph_and_finishes_it_after_a_kill(
    entry: Entry, tmp_path: Path, temporal_binary: Path
) -> None:
    try:
        contender = await entry.make(tmp_path)
    except RuntimeError as error:
        pytest.skip(f"{entry.name} cannot be had: {error}")
    try:
        await contender.start()
        cost = await contender.run("small", [graphs.layered(20), graphs.chain(5)])
        assert cost.wall > 0
        assert cost.cpu >= 0
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
    finally:
        await contender.stop()


async def _unavailable(_: Path) -> Contender:
    raise RuntimeError("no registry | in reach")


async def test_an_engine_that_cannot_be_had_gets_a_row_that_says_why() -> None:
    wall, _, kills = await alternatives.measure(
        Bench(repeats=1, quick=True, say=print), [Entry("missing", _unavailable)]
    )
    for table in (wall, kills):
        (row,) = table.rows
        assert row.cells[:2] == ["missing", "no registry / in reach"]
        assert len(row.cells) == len(table.columns)


@pytest.mark.slow
async def test_the_comparison_fills_its_tables(temporal_binary: Path) -> None:
    tables = await alternatives.measure(Bench(repeats=1, quick=True, say=print), ENTRIES[:1])
    wall, cpu, kills = tables
    assert [len(table.rows) for table in tables] == [1, 1, 2]
    assert all(len(row.cells) == len(table.columns) for table in tables for row in table.rows)
    for table in (wall, cpu):
        assert all(float(cell) > 0 for cell in table.rows[0].cells[2:])
    assert [row.cells[-1] for row in kills.rows] == ["1 of 1", "1 of 1"]
