"""A plan of many steps, its worker killed again and again: every step is done, every effect is there once.

PLANS_CHAOS_STEPS raises the number of steps (400 by default); 10,000 take a few minutes.
"""

from __future__ import annotations

import os
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from plansurvive.client import runs
from plansurvive.plans.run import Options
from plansurvive.runtime.server import HOST
from plansurvive.runtime.storage import LocalDirectory, converter
from tests.chaos.conftest import KILLS, Chaos
from tests.kit.waiting import connected, until

STEPS = int(os.environ.get("PLANS_CHAOS_STEPS", "400"))
ACROSS = 50
PATIENCE = 60.0 + STEPS / 10


def rows_of_edits() -> list[dict[str, Any]]:
    """Each step puts a one before the zero in a file of its own, after the step above it; done twice, there are two."""
    return [
        {
            "id": f"s{number}",
            "tool": "edit_file",
            "args": {"path": f"{number}.txt", "oldText": "0", "newText": "10"},
            "dependsOn": [f"s{number - ACROSS}"] if number >= ACROSS else [],
        }
        for number in range(STEPS)
    ]


@pytest.mark.slow
async def test_every_edit_of_a_big_plan_is_made_once_however_often_its_worker_is_killed(
    chaos: Chaos, state_dir: Path
) -> None:
    workspace = chaos.plans.workspace
    for number in range(STEPS):
        (workspace / f"{number}.txt").write_text("0\n")
    shared = converter(LocalDirectory(state_dir / "values"))
    client = await connected(f"{HOST}:{chaos.server.port}", data_converter=shared)
    await chaos.worker.up()
    options = Options(workspace=str(workspace))
    started = await runs.start(client, {"steps": rows_of_edits()}, options=options, queue=chaos.plans.queue)
    for moment in sorted(chaos.chance.sample(range(STEPS // 10, STEPS * 9 // 10), KILLS)):
        await until(partial(_has, workspace, moment), f"{moment} edits", patience=PATIENCE, every=0.2)
        chaos.worker.kill()
        await chaos.worker.up()
    summary = await runs.wait(client, started.plan_id)
    assert summary.counts == {"total": STEPS, "completed": STEPS}
    assert Counter(path.read_text() for path in workspace.glob("*.txt")) == {"10\n": STEPS}


def _has(workspace: Path, edits: int) -> bool:
    """Whether so many files are longer than they were."""
    names = (entry for entry in os.scandir(workspace) if entry.name.endswith(".txt"))
    return sum(entry.stat().st_size > 2 for entry in names) >= edits
