"""The same graphs on other workflow libraries with durable state, compared with a plan on a server with data on disk.

Each library is installed once with pip, in its own virtual environment in the cache directory. A library that cannot be
installed or fails gets a row with the error. There is no bar: these tools have other purposes.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import graphs
from benchmarks.bench import Bench
from benchmarks.graphs import Steps
from benchmarks.stand import ROOT
from benchmarks.tables import Table
from runtime.settings import Settings

LIBRARIES = {
    "langgraph": ["langgraph==1.2.22", "langgraph-checkpoint-sqlite==3.1.2", "aiosqlite"],
    "dbos": ["dbos==3.4.0"],
    # Later versions of FastAPI no longer take an argument that this Prefect gives them.
    "prefect": ["prefect==3.8.8", "fastapi<0.150"],
}
SCRIPTS = Path(__file__).parent / "others"
PATIENCE = 900.0


async def measure(bench: Bench) -> list[Table]:
    """Run a chain, a fan-out and a layered graph on each."""
    small = 10 if bench.quick else 1
    shapes = {
        f"chain {200 // small}": graphs.chain(200 // small),
        f"fan-out and join {200 // small}": graphs.fan_out(200 // small),
        f"layered {1_000 // small}": graphs.layered(1_000 // small),
    }
    table = Table(
        title="Alternatives",
        columns=["engine", "state", *(f"{name}, ms/step" for name in shapes)],
        note="Steps that do nothing, durable state on, one process beside the engine's own.",
    )
    _add(table, "a plan", "Temporal server, SQLite file", await _plans(bench, shapes), shapes)
    for library, packages in LIBRARIES.items():
        bench.say(library)
        try:
            found = await _others(library, packages, shapes, bench.repeats)
        except (RuntimeError, TimeoutError) as error:
            table.add(library, str(error)[-200:] or "took too long", *("-" for _ in shapes))
        else:
            _add(table, found["library"], found["how"], found["seconds"], shapes)
    return [table]


def _add(table: Table, engine: str, how: str, seconds: dict[str, list[float]], shapes: dict[str, Steps]) -> None:
    cells = (f"{1_000 * median(seconds[name]) / len(steps):.2f}" for name, steps in shapes.items())
    table.add(engine, how, *cells)


async def _plans(bench: Bench, shapes: dict[str, Steps]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {name: [] for name in shapes}
    async with bench.stand(durable=True) as stand:
        for turn in range(bench.repeats + 1):
            for name, steps in shapes.items():
                sample = await stand.run("plan", [steps])
                if turn:
                    found[name].append(sample.seconds)
    return found


async def _others(library: str, packages: list[str], shapes: dict[str, Steps], repeats: int) -> dict[str, Any]:
    python = await _environment(library, packages)
    request = json.dumps({"graphs": shapes, "repeats": repeats})
    with tempfile.TemporaryDirectory(prefix="plans-bench-", ignore_cleanup_errors=True) as folder:
        output = await _run(str(python), str(SCRIPTS / f"{library}_steps.py"), folder, given=request, folder=folder)
    found: dict[str, Any] = json.loads(output.strip().splitlines()[-1])
    return found


async def _environment(library: str, packages: list[str]) -> Path:
    """The Python of the library's virtual environment, created if needed."""
    folder = Settings.read({}).cache_dir / "benchmarks" / library
    done = folder / "installed.json"
    if not done.exists() or json.loads(done.read_text()) != packages:
        await _run(sys.executable, "-m", "venv", "--clear", str(folder))
        await _run(str(folder / "bin" / "pip"), "install", "--quiet", *packages)
        done.write_text(json.dumps(packages))
    return folder / "bin" / "python"


async def _run(*command: str, given: str = "", folder: str | None = None) -> str:
    """A command's output. Raises RuntimeError with the end of its error output if it fails, or TimeoutError."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": "/usr/bin:/bin", "HOME": folder or str(Path.home()), "PYTHONPATH": str(ROOT) if folder else ""},
        cwd=folder,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(PATIENCE):
            output, errors = await process.communicate(given.encode())
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # servers that a library started and did not stop
    if process.returncode:
        raise RuntimeError(f"{command[-1]} failed: {errors.decode(errors='replace').strip()[-500:]}")
    return output.decode()
