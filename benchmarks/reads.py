"""Cost of file stamps: a read that fingerprints a file of 1 GiB, compared with a plain read."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.processes import Watched
from benchmarks.tables import Table
from plansurvive.activities.workspace.contents import read_lines
from plansurvive.activities.workspace.workspace import Workspace

RATIO = 1.15
"""Bar: time of a tracked read relative to a plain one."""
MEMORY = 16 * 1024 * 1024
"""Bar: additional memory in bytes."""
PIECE = 256 * 1024
GIB = 1024**3


async def measure(bench: Bench) -> list[Table]:
    """Alternate the two reads; take the best of each."""
    size = GIB // 8 if bench.quick else GIB
    with tempfile.TemporaryDirectory(prefix="plans-bench-") as folder:
        path = Path(folder) / "long.txt"
        await asyncio.to_thread(_fill, path, size)
        return [await asyncio.to_thread(_compare, path, size, max(3, bench.repeats))]


def _compare(path: Path, size: int, repeats: int) -> Table:
    workspace, own = Workspace(str(path.parent)), Watched(os.getpid())

    def plain() -> None:
        with path.open("rb", buffering=0) as file:
            while file.read(PIECE):
                pass

    def tracked() -> None:
        with workspace.file(path.name) as place:
            read_lines(place, 0, 1)

    plain()
    own.forget_peak()
    before = own.peak_memory
    times = [(_seconds(plain), _seconds(tracked)) for _ in range(repeats)]
    growth = own.peak_memory - before
    one, other = (min(column) for column in zip(*times, strict=True))
    table = Table(
        title="Reading a long file",
        columns=["bytes", "plain s", "tracked s", "ratio", "memory MB"],
        note=f"From the page cache, best of {repeats}. Bar: ratio {RATIO}, memory {MEMORY // 1024**2} MB.",
    )
    cells = [f"{size:,}", f"{one:.3f}", f"{other:.3f}", f"{other / one:.2f}", f"{growth / 1024**2:.1f}"]
    table.add(*cells, reached=other / one <= RATIO and growth <= MEMORY)
    return table


def _seconds(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _fill(path: Path, size: int) -> None:
    """Fill the file with lines of text; not sparse."""
    line = b"0123456789abcde\n"
    with path.open("wb") as file:
        for number in range(size // 2**20):
            file.write(b"%015d\n" % number + line * (2**16 - 1))
