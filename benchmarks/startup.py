"""Start-up time of short commands."""

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
    """Measure the first `plan run` without server and worker, later ones, and commands that only print."""
    table = Table(title="Start-up", columns=["what", "seconds"], note="Whole commands, from shell to shell.")
    with tempfile.TemporaryDirectory(prefix="plans-bench-", ignore_cleanup_errors=True) as folder:
        environ = _environ(Path(folder))
        file = Path(folder) / "plan.json"
        file.write_text(json.dumps({"steps": [{"id": "look", "tool": "list_directory", "args": {"path": "."}}]}))
        try:
            table.add("plan run, server and worker not running", f"{await _command(environ, 'run', str(file)):.2f}")
            warm = [await _command(environ, "run", str(file)) for _ in range(bench.repeats)]
            table.add("plan run, both running", f"{median(warm):.2f}")
            for arguments in (("--help",), ("check", str(file)), ("list",)):
                taken = [await _command(environ, *arguments) for _ in range(bench.repeats)]
                table.add(f"plan {arguments[0]}", f"{median(taken):.2f}")
            bare = [await _process(environ, "-c", "import temporalio.client") for _ in range(bench.repeats)]
            table.add("of which `import temporalio.client`, for plan list", f"{median(bare):.2f}")
        finally:
            await _command(environ, "down")
    return [table]


def _environ(folder: Path) -> Mapping[str, str]:
    workspace = folder / "workspace"
    workspace.mkdir()
    inherited = {name: os.environ[name] for name in ("HOME", "PATH", "LANG", "GOPATH") if name in os.environ}
    return inherited | {
        "PLANS_STATE_DIR": str(folder / "state"),
        "PLANS_WORKSPACE": str(workspace),
        "PLANS_SERVER": "embedded",
        "PYTHONPATH": str(Path(__file__).parent.parent),
    }


async def _command(environ: Mapping[str, str], *arguments: str) -> float:
    """Run a command of `plan`; returns its duration in seconds."""
    return await _process(environ, "-m", "plansurvive", *arguments)


async def _process(environ: Mapping[str, str], *arguments: str) -> float:
    """Run the interpreter; returns its duration in seconds. Raises RuntimeError with its output if it fails."""
    began = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *arguments),
        env=dict(environ),
        cwd=environ["PLANS_WORKSPACE"],
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    if process.returncode:
        text = f"{' '.join(arguments)}: exit code {process.returncode}: {output.decode()[-1_000:]}"
        raise RuntimeError(text)
    return time.perf_counter() - began
