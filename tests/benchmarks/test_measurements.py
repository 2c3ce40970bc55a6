"""The measurements run to its end at a tiny size, on a server and workers of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import express, graphs, latency, payloads, speed, telemetry, to_bare
from benchmarks.bench import Bench
from benchmarks.stand import Stand
from benchmarks.tables import PASS, SHORT, Table
from tests.nightly import only_nightly


@pytest.fixture
def bench() -> Bench:
    return Bench(repeats=1, quick=True, say=print)


@pytest.mark.slow
async def test_a_plan_and_the_workflow_by_hand_do_the_same_steps(tmp_path: Path, temporal_binary: Path) -> None:
    async with Stand(tmp_path / "stand", durable=False) as stand:
        ours = await stand.run("plan", [graphs.layered(60)])
        theirs = await stand.run("minimal", [graphs.layered(60)])
        view = await (await stand.start("plan", graphs.references(20, 10_000))).result()
    assert (ours.steps, ours.runs, theirs.runs) == (60, 1, 1)
    assert ours.events >= theirs.steps * 3
    assert view["counts"] == {"total": 20, "completed": 20}


@pytest.mark.parametrize(
    "module", [only_nightly(each) for each in (latency, speed, to_bare, express, payloads, telemetry)]
)
async def test_a_measurement_fills_its_table(module: object, bench: Bench, temporal_binary: Path) -> None:
    tables = await module.measure(bench)  # type: ignore[attr-defined]
    assert tables
    for table in tables:
        assert table.rows
        assert all(len(row.cells) == len(table.columns) for row in table.rows)


def test_a_ratio_falls_short_of_its_bar_against_bare_as_it_comes_alone() -> None:
    table = Table(title="", columns=[])
    row = to_bare.Row("chain", 1.05, [])
    to_bare.add(table, row, 10.5, 10.0, 5.0)
    to_bare.add(table, row, 10.6, 10.0, 20.0)
    assert [each.verdict for each in table.rows] == [PASS, SHORT]
    assert table.rows[0].cells == ["chain", "10.50", "10.00", "5.00", "1.05", "1.05", "2.10"]


def test_the_rows_of_express_are_those_that_have_a_bar() -> None:
    assert [(row.name, row.bar) for row in express.rows(quick=False)] == [
        ("chain 200", 0.10),
        ("fan-out and join 200", 0.35),
        ("layered 1000", 0.25),
        ("50 plans of 20", 0.60),
        ("loop of 10000 empty items", 0.20),
    ]


def test_every_workload_has_the_bar_it_is_held_to() -> None:
    assert [(row.name, row.bar) for row in to_bare.rows(quick=False)] == [
        ("chain 200", 1.05),
        ("fan-out and join 200", 1.10),
        ("layered 1000", 1.10),
        ("10 KB references 200", 1.15),
        ("50 plans of 20", 1.10),
        ("layered 10000", 1.15),
        ("loop of 10000 empty items", 1.15),
    ]
