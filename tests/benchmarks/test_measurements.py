"""The measurements run to its end at a tiny size, on a server and workers of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import graphs, latency, payloads, speed, telemetry
from benchmarks.bench import Bench
from benchmarks.stand import Stand
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
    "module", [only_nightly(latency), only_nightly(speed), only_nightly(payloads), only_nightly(telemetry)]
)
async def test_a_measurement_fills_its_table(module: object, bench: Bench, temporal_binary: Path) -> None:
    tables = await module.measure(bench)  # type: ignore[attr-defined]
    assert tables
    for table in tables:
        assert table.rows
        assert all(len(row.cells) == len(table.columns) for row in table.rows)
