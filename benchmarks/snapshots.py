"""Cost of change tracking: the workspace snapshots before and after each command."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.tables import Table
from plansurvive.activities.provenance.scan import look

FILES = 10_000
BAR_MILLISECONDS = 100.0


async def measure(bench: Bench) -> list[Table]:
    """Measure one snapshot, and two with their diff."""
    table = Table(
        title="Workspace snapshots",
        columns=["files", "one snapshot", "two snapshots and diff"],
        note="Taken before and after each command; other tools need none. Bar for 10,000 files:"
        f" {BAR_MILLISECONDS:.0f} ms for one snapshot. Files in directories of 100.",
    )
    for files in (100, FILES // 10 if bench.quick else FILES):
        with tempfile.TemporaryDirectory(prefix="plans-bench-") as folder:
            _fill(Path(folder), files)
            one = statistics.median(_one(folder) for _ in range(bench.repeats))
            both = statistics.median(_both(folder) for _ in range(bench.repeats))
        bar = one <= BAR_MILLISECONDS * max(1.0, files / FILES)
        table.add(f"{files:,}", f"{one:.1f} ms", f"{both:.1f} ms", reached=bar if files >= FILES else None)
    return [table]


def _fill(folder: Path, files: int) -> None:
    for number in range(files):
        path = folder / f"d{number // 100}" / f"f{number % 100}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text("x")


def _one(folder: str) -> float:
    started = time.perf_counter()
    look(folder)
    return (time.perf_counter() - started) * 1000


def _both(folder: str) -> float:
    started = time.perf_counter()
    look(folder).difference(look(folder))
    return (time.perf_counter() - started) * 1000
