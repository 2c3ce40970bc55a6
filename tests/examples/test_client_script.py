"""The example client script: it starts a plan, approves a step by signal and prints the result."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from temporalio.worker import Worker

SCRIPT = Path(__file__).parents[2] / "examples" / "client_script.py"


@pytest.mark.slow
@pytest.mark.in_turn
async def test_the_client_script_runs_its_plan(environ: dict[str, str], worker: Worker, workspace: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(SCRIPT), str(workspace), env=environ, stdout=asyncio.subprocess.PIPE
    )
    out = (await process.communicate())[0].decode()
    assert process.returncode == 0
    assert "step 'remove' approved by the script" in out
    assert "The note said: Plans survive." in out
    assert "The plan is completed" in out
    assert not list(workspace.iterdir())
