"""A pipeline of commands over real files: run whole, again with nothing changed, and after one file was edited."""

from __future__ import annotations

import random
import time
import uuid
from typing import Any

from benchmarks.bench import Bench
from benchmarks.stand import Stand
from benchmarks.tables import Table
from plansurvive.client import runs
from plansurvive.client.verbs import start as starting
from plansurvive.plans.run import Options

WIDTH, LAYERS = 40, 4
SHARE = 0.1
"""Bar: of the time of the whole pipeline, beyond the share of the steps that run, for all the others."""


async def measure(bench: Bench) -> list[Table]:
    """Run the pipeline three times."""
    async with bench.stand() as stand:
        return [await _pipeline(stand, 10 if bench.quick else WIDTH)]


async def _pipeline(stand: Stand, width: int) -> Table:
    steps = _steps(width)
    table = Table(
        title=f"Pipeline of {len(steps)} commands over files, results of earlier runs taken",
        columns=["run", "commands run", "wall s", "share of the first run", "share of the commands"],
        note="Each command hashes two files 200 times and writes a third. Bar: the share of the commands that run, and"
        f" {SHARE:.0%} of the first run for all that do not.",
    )
    (stand.workspace / "in").mkdir()
    for number in range(width):
        (stand.workspace / "in" / f"{number}").write_text(f"source {number}\n")
    whole = 0.0
    for name in ("first", "nothing changed", "one file edited"):
        if name == "one file edited":
            (stand.workspace / "in" / "3").write_text("edited\n")
        seconds, called = await _run(stand, steps)
        whole = whole or seconds
        wanted = called / len(steps)
        reached = seconds / whole <= wanted + SHARE if name != "first" else None
        table.add(name, str(called), f"{seconds:.2f}", f"{seconds / whole:.2f}", f"{wanted:.2f}", reached=reached)
    return table


async def _run(stand: Stand, steps: list[dict[str, Any]]) -> tuple[float, int]:
    """Seconds, and the number of commands that were run."""
    options = Options(workspace=str(stand.workspace), approve_all=True)
    plan, name, began = {"title": "pipeline", "steps": steps}, f"bench-{uuid.uuid4().hex[:12]}", time.perf_counter()
    await starting.start(stand.client, plan, options=options, plan_id=name, queue="bench-plan")
    await runs.wait(stand.client, name)
    seconds, view = time.perf_counter() - began, await runs.show(stand.client, name)
    return seconds, sum(1 for step in view.steps if step.result and not step.result.taken_from)


def _steps(width: int) -> list[dict[str, Any]]:
    chance = random.Random(18)
    steps = [_step(f"n{number}", [f"in/{number}"], f"out/0/{number}", []) for number in range(width)]
    for layer in range(1, LAYERS + 1):
        for number in range(width):
            pair = chance.sample(range(width), 2)
            names = [f"n{each}" if layer == 1 else f"s{layer - 1}_{each}" for each in pair]
            files = [f"out/{layer - 1}/{each}" for each in pair]
            steps.append(_step(f"s{layer}_{number}", files, f"out/{layer}/{number}", names))
    return steps


def _step(name: str, files: list[str], target: str, needs: list[str]) -> dict[str, Any]:
    command = (
        f"mkdir -p {target.rpartition('/')[0]}; for i in $(seq 200); do cat {' '.join(files)} | sha256sum; done"
        f" | tail -n 1 > {target}"
    )
    rule = {"reads": files, "outside": True}  # where there is no sandbox, commands may reach further
    return {"id": name, "tool": "run_command", "args": {"command": command}, "dependsOn": needs, "cache": rule}
