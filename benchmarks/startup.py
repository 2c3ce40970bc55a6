"""How long `plan run` takes for a plan of one step: what a user waits for before anything happens."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median

from benchmarks.bench import Bench
from benchmarks.tables import Table


async def measure(bench: Bench) -> list[Table]:
    """The first run on a machine where nothing runs, later ones, and a command that needs no server."""
    table = Table(title="Start-up", columns=["what", "seconds"], note="Whole commands, from shell to shell.")
    with tempfile.TemporaryDirectory(prefix="plans-bench-", ignore_cleanup_errors=True) as folder:
        environ = _environ(Path(folder))
        file = Path(folder) / "plan.json"
        file.write_text(json.dumps({"steps": [{"id": "look", "tool": "list_directory", "args": {"path": "."}}]}))
        try:
            table.add("plan run, server and worker not running", f"{await _command(environ, 'run', str(file)):.2f}")
            warm = [await _command(environ, "run", str(file)) for _ in range(bench.repeats)]
            table.add("plan run, both running", f"{median(warm):.2f}")
            check = [await _command(environ, "check", str(file)) for _ in range(bench.repeats)]
            table.add("plan check", f"{median(check):.2f}")
        finally:
            await _command(environ, "down")
    return [table]


def _environ(folder: Path) -> Mapping[str, str]:
    workspace = folder / "workspace"
    workspace.mkdir()
    kept = {name: os.environ[name] for name in ("HOME", "PATH", "LANG", "GOPATH") if name in os.environ}
    return kept | {
        "PLANS_STATE_DIR": str(folder / "state"),
        "PLANS_WORKSPACE": str(workspace),
        "PLANS_SERVER": "embedded",
        "PYTHONPATH": str(Path(__file__).parent.parent),
    }


async def _command(environ: Mapping[str, str], *arguments: str) -> float:
    """Run a command to its end; returns the seconds it took. Raises RuntimeError with its words when it fails."""
    began = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "client", *arguments),
        env=dict(environ),
        cwd=environ["PLANS_WORKSPACE"],
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"plan {' '.join(arguments)}: exit code {process.returncode}: {output.decode()[-1_000:]}")
    return time.perf_counter() - began
