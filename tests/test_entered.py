"""What the replay of the plainest plan enters: no feature that it does not use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def entered(*names: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "scripts.entered", "--files", *names], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_chain_enters_the_core_and_no_feature() -> None:
    said = entered("chain.1")
    assert "workflows/execution.py: Execution.__init__" in said
    assert "\n0 files of features\n" in said


def test_a_feature_that_is_used_is_seen() -> None:
    assert "features/notify/in_workflow.py" in entered("notified.1")


def test_a_step_enters_its_workflow_and_an_attempt_and_no_feature() -> None:
    said = entered("--step")
    assert "Schedule.settle" in said
    assert "workflows/tool_call.py: _begin" in said
    assert "activities/tools/files.py: " in said
    assert "PlanWorkflow.__init__" not in said, "the workflow had begun before"
    assert "\n0 files of features\n" in said
