"""The clock of a worker is set back or ahead, also while it is down: no deadline of a plan moves with it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.conftest import Chaos
from tests.chaos.night.clock import Clock, missing
from tests.kit.driving import step
from tests.nightly import only_nightly, only_sampled

HOUR = 3_600
SOON = {"approval": {"timeout": 3, "onTimeout": "deny"}}
LATE = {"approval": {"timeout": 1_200, "onTimeout": "approve"}}


def gate(name: str, *needs: str, **fields: Any) -> dict[str, Any]:
    args = {"path": f"{name}.txt", "content": "x"}
    return {"id": name, "tool": "write_file", "args": args, "dependsOn": [*needs], "requiresApproval": True, **fields}


STEPS = [
    gate("soon", **SOON),
    gate("late", **LATE),
    {"id": "question", "tool": "ask", "args": {"question": "?", "timeout": 3, "onTimeout": "skip"}},
    {"id": "event", "tool": "wait_for", "args": {"event": "never", "timeout": 3}, "retry": {"attempts": 1}},
    {"id": "nap", "tool": "sleep", "args": {"seconds": 3}},
]  # fmt: skip


@pytest.mark.skipif(bool(missing()), reason=missing())
@pytest.mark.parametrize(
    ("seconds", "killed"),
    [only_nightly(-HOUR, False), only_sampled(HOUR, False), only_nightly(-HOUR, True), only_nightly(HOUR, True)],
)
async def test_no_deadline_of_a_plan_moves_with_the_clock_of_its_worker(
    chaos: Chaos, tmp_path: Path, seconds: int, killed: bool
) -> None:
    clock = Clock(tmp_path)
    chaos.worker.environ |= clock.environ
    await chaos.worker.up()
    plan = await chaos.plans.start(STEPS, timeout=1_200)
    await plan.until_asked("late")
    if killed:
        chaos.worker.kill()
    clock.step(seconds)
    assert abs(time_of(clock) - time.time() - seconds) < HOUR / 2, "control: such a process has another time"
    if killed:
        await chaos.worker.up()
    for name, status in {"soon": "skipped", "question": "skipped", "event": "failed", "nap": "completed"}.items():
        await plan.until_status(name, status)
    view = await plan.view()
    assert "awaiting" in step(view, "late"), "twenty minutes have not passed"
    await plan.approve("late")
    view = await plan.ended()
    assert not [each for each in view["log"] if each.get("stepId") == "late" and "no decision within" in each["text"]]
    assert step(view, "late")["status"] == "completed"


def time_of(clock: Clock) -> float:
    """What a process says whose clock this is."""
    ask = [sys.executable, "-c", "import time; print(time.time())"]
    return float(subprocess.run(ask, env=os.environ | clock.environ, capture_output=True, check=True).stdout)
