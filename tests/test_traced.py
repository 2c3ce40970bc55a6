"""What a live step, approval and turn of an agent enter is counted."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.slow
def test_three_paths_through_a_worker_are_traced() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "scripts.traced", "--files"], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    heads = [line.partition(":")[0] for line in done.stdout.splitlines() if not line.startswith(" ")]
    assert heads == ["step", "approval", "turn of an agent"]
    step, approval = done.stdout.split("approval:")[0], done.stdout.split("approval:")[1].split("turn of an agent:")[0]
    assert "Schedule.settle" in step
    assert "approve" not in step
    assert "approve" in approval
