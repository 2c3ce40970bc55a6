"""Cost of tracing the processes of a command: the same commands with and without it, in turn."""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.tables import Table
from plansurvive.activities.sandbox.process import tried
from plansurvive.activities.sandbox.sandbox import choose

FILES = 10_000
COMMANDS = {
    "nothing": ("", "true"),
    "reading all files": ("", "find src -type f | xargs cat > /dev/null"),
    "tar, extracting them": ("rm -rf out; mkdir out", "tar xf src.tar -C out"),
    "git, checking them out": ("rm -rf repo/src", "cd repo && git checkout -q -- ."),
    "compiling 40 files": ("rm -f c/*.o", "cd c && for each in *.c; do gcc -O1 -c $each; done"),
}
"""What is prepared outside, and the command."""
_PREPARED = """
tar cf src.tar src && git init -q repo && cp -r src repo && cd repo && git add -A &&
git -c user.name=n -c user.email=e commit -qm m && mkdir ../c && cd ../c &&
for n in $(seq 40); do echo "#include <stdio.h>
int f$n(int a) { return printf(\\"%d\\", a); }" > f$n.c; done
"""


async def measure(bench: Bench) -> list[Table]:
    """Measure each command with and without a trace; the shortest of several runs counts."""
    files = FILES // 10 if bench.quick else FILES
    table = Table(
        title="Tracing",
        columns=["command", "untraced", "traced", "ratio"],
        note=f"Commands in a workspace of {files:,} files of 1 KB, in memory; shortest of {bench.repeats} runs each."
        " Opens for writing and changes of names are reported to the launcher; a disk makes ratios smaller.",
    )
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(prefix="plans-bench-", dir=memory) as folder:
        workspace = Path(folder).resolve() / "workspace"
        for number in range(files):
            path = workspace / "src" / f"d{number // 100}" / f"f{number}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("x" * 1_000)
        await asyncio.to_thread(_shell, _PREPARED, workspace)
        for name, (before, command) in COMMANDS.items():
            times: dict[bool, list[float]] = {False: [], True: []}
            for _ in range(bench.repeats):
                for is_traced in (False, True):
                    await asyncio.to_thread(_shell, before, workspace)
                    times[is_traced].append(await _time(workspace, command, is_traced))
            plain, traced = min(times[False]), min(times[True])
            table.add(name, f"{plain * 1000:.0f} ms", f"{traced * 1000:.0f} ms", f"{traced / plain:.2f}")
    return [table]


def _shell(command: str, workspace: Path) -> None:
    subprocess.run(["/bin/sh", "-c", command], cwd=workspace, check=True)


async def _time(workspace: Path, command: str, is_traced: bool) -> float:
    state = workspace.parent / "state"
    state.mkdir(exist_ok=True)
    sandbox = replace(choose("auto"), state=state)
    order = sandbox.confine(["/bin/sh", "-c", command], str(workspace), str(workspace), (), {})
    order = replace(order, trace=str(state / "trace") if is_traced else "")
    started = time.perf_counter()
    ended = await asyncio.to_thread(tried, order, 600)
    taken = time.perf_counter() - started
    if ended.returncode:
        raise RuntimeError(ended.stderr)
    await asyncio.to_thread((state / "trace").unlink, missing_ok=True)
    return taken
