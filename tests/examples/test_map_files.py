"""The example examples/map-files: the same steps for each of twenty files; one that fails is corrected and resumed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from temporalio.client import Client
from temporalio.worker import Worker

from tests.client.cli.command import plan
from tests.kit.driving import Started

EXAMPLE = Path(__file__).parent.parent.parent / "examples/map-files"


@pytest.fixture
def stations(tmp_path: Path) -> Path:
    """A copy of the example."""
    return shutil.copytree(EXAMPLE, tmp_path / "stations", ignore=shutil.ignore_patterns("expected"))


def assert_as_expected(made: Path) -> None:
    """Every expected file is there, byte for byte."""
    expected = EXAMPLE / "expected"
    files = [path.relative_to(expected) for path in expected.rglob("*") if path.is_file()]
    assert len(files) == 21
    assert [file for file in files if (made / file).read_bytes() != (expected / file).read_bytes()] == []


async def called(client: Client, plan_id: str) -> list[str]:
    """The steps whose tools a plan called."""
    return sorted({*await Started(client, f"plan-{plan_id}").scheduled()} - {"compare_files"})


@pytest.mark.slow
@pytest.mark.in_turn
async def test_three_steps_for_each_of_twenty_files(environ: dict[str, str], worker: Worker, stations: Path) -> None:
    ended = await plan(environ, "run", str(stations / "plan.yaml"))
    assert ended.code == 0, ended.out + ended.err
    assert_as_expected(stations)


@pytest.mark.slow
@pytest.mark.in_turn
async def test_after_one_file_is_corrected_resume_runs_its_steps_and_no_others(
    environ: dict[str, str], worker: Worker, temporal_client: Client, stations: Path
) -> None:
    broken = stations / "stations/narvik.json"
    readings = broken.read_text()
    broken.write_text(readings.replace("]", ""))
    failed = await plan(environ, "run", str(stations / "plan.yaml"), "--json")
    assert failed.code == 1, failed.out + failed.err
    assert not (stations / "report.md").exists()
    first = await called(temporal_client, failed.json["planId"])
    assert len(first) == 1 + 20 * 3 - 2

    broken.write_text(readings)
    resumed = await plan(environ, "resume", failed.json["planId"], "--follow")
    assert resumed.code == 0, resumed.out + resumed.err
    assert_as_expected(stations)
    item = "station[stations/narvik.json]"
    ran = await called(temporal_client, f"{failed.json['planId']}-r2")
    assert ran == sorted([f"{item}.readings", f"{item}.summary", f"{item}.line", "report"])
