"""Replays every recorded history against the code on the path: `python tests/replay/replayer.py`.

Prints one line per history that cannot be replayed; exit code 1 if there is one. A program of its own, so that it can
run under any hash seed and against another copy of the code.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from temporalio.client import WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from worker import PASSED_THROUGH
from workflows.agent import AgentWorkflow
from workflows.plan import PlanWorkflow

HISTORIES = Path(__file__).parent / "histories"


async def replay() -> int:
    """Replay all; returns how many failed."""
    restrictions = SandboxRestrictions.default.with_passthrough_modules(*PASSED_THROUGH)
    replayer = Replayer(
        workflows=[PlanWorkflow, AgentWorkflow],
        workflow_runner=SandboxedWorkflowRunner(restrictions=restrictions),
        data_converter=pydantic_data_converter,
    )
    paths = sorted(HISTORIES.glob("*.json"))
    results = await replayer.replay_workflows(_histories(paths), raise_on_replay_failure=False)
    failed = [(path, results.replay_failures[run]) for path, run in _runs(paths) if run in results.replay_failures]
    for path, error in failed:
        print(f"FAILED {path.stem}: {' '.join(str(error).split())[:300]}")
    print(f"{len(paths) - len(failed)} of {len(paths)} histories replayed")
    return len(failed)


async def _histories(paths: list[Path]) -> AsyncIterator[WorkflowHistory]:
    for path in paths:
        data = json.loads(path.read_text())
        yield WorkflowHistory.from_json(data.pop("workflowId"), data)


def _runs(paths: list[Path]) -> list[tuple[Path, str]]:
    """The run id of every history: what failures are named by."""
    found = []
    for path in paths:
        first = json.loads(path.read_text())["events"][0]
        found.append((path, str(first["workflowExecutionStartedEventAttributes"]["originalExecutionRunId"])))
    return found


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    code = min(asyncio.run(replay()), 1)
    gc.collect()
    sys.stdout.flush()
    os._exit(code)
