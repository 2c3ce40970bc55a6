"""Replays every recorded history against the code on the path: `python tests/replay/replayer.py`.

Prints one line per history that cannot be replayed; exit code 1 if there is one. With `--first` it ends there. A
program of its own, so that it can run under any hash seed and against another copy of the code.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import sys
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from plansurvive.features.workflow_types import WORKFLOWS
from plansurvive.runtime.workflow_runner import PASSED_THROUGH

HISTORIES = Path(__file__).parent / "histories"
RELEASES = Path(__file__).parent / "releases"
BEFORE_3_12 = frozenset(("coding-agent.1",))
"""Histories that only Python 3.11 replays: their runs waited in `asyncio.wait_for` (see `workflows.waits`)."""


class Patient(ThreadPoolExecutor):
    """Waits for what it runs, so that the SDK's deadlock detection has nothing to time.

    It allows two seconds of a clock; a workflow task full of conditions takes most of one, and more on a busy machine.
    Our workers allow more (`runtime/workflow_runner.py`); a `Replayer` has no option and no attribute for it.
    """

    def submit(self, function: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        """Run it to its end, in a thread."""
        running = super().submit(function, *args, **named)
        wait([running])
        return running


async def replay(only_first: bool) -> int:
    """Replay all, or until the first that fails; returns how many failed."""
    restrictions = SandboxRestrictions.default.with_passthrough_modules(*PASSED_THROUGH)
    replayer = Replayer(
        workflows=WORKFLOWS,
        workflow_task_executor=Patient(),
        workflow_runner=SandboxedWorkflowRunner(restrictions=restrictions),
        data_converter=pydantic_data_converter,
    )
    paths = [*sorted(HISTORIES.glob("*.json")), *of_releases(RELEASES, all_of_them="--all" in sys.argv)]
    if sys.version_info >= (3, 12):
        paths = [each for each in paths if each.stem not in BEFORE_3_12]
    failed = done = 0
    async with replayer.workflow_replay_iterator(_histories(paths)) as results:
        async for result in results:
            if result.replay_failure is not None:
                print(f"FAILED {paths[done].stem}: {' '.join(str(result.replay_failure).split())[:300]}")
                failed += 1
            done += 1
            if failed and only_first:
                break
    print(f"{done - failed} of {len(paths)} histories replayed")
    return failed


def of_releases(folder: Path, *, all_of_them: bool) -> list[Path]:
    """The histories recorded at releases: of the first and the newest two, which bounds `make test`, or all."""
    releases = (
        sorted(folder.iterdir(), key=lambda each: [int(part) for part in each.name.split(".")])
        if folder.is_dir()
        else []
    )
    chosen = releases if all_of_them else [*releases[:1], *releases[1:][-2:]]
    return [path for release in chosen for path in sorted(release.glob("*.json"))]


async def _histories(paths: list[Path]) -> AsyncIterator[WorkflowHistory]:
    for path in paths:
        data = json.loads(path.read_text())
        yield WorkflowHistory.from_json(data.pop("workflowId"), data)


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    code = min(asyncio.run(replay("--first" in sys.argv)), 1)
    gc.collect()
    sys.stdout.flush()
    os._exit(code)
