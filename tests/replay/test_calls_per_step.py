"""How many functions of ours a plan calls for each of its steps: what deciding costs, on any machine the same.

A time would need a quiet machine. The limits are what was reached and a tenth more, the start of the plan included: a
feature that is asked once more for every step, or a value worked out again for each, shows here.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from temporalio.client import WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner

from plansurvive.features.workflow_types import WORKFLOWS

HERE = Path(__file__).parent
FOLDERS = tuple(str(HERE.parent.parent / name) for name in ("features", "plans", "runtime", "workflows"))


@pytest.mark.parametrize(("history", "steps", "limit"), [("fan-out", 13, 285), ("layers", 16, 325)])
def test_a_step_is_decided_in_few_calls_of_functions(history: str, steps: int, limit: int) -> None:
    text = (HERE / "histories" / f"{history}.1.json").read_text()
    calls = _counted(WorkflowHistory.from_json(f"plan-{history}", text))
    per_step = sum(calls.values()) / steps
    assert per_step <= limit, f"{per_step:.0f} calls a step; most often {calls.most_common(10)}"


def _counted(history: WorkflowHistory) -> Counter[str]:
    """The functions that a replay calls, once everything is loaded, and how often."""
    asyncio.run(_replay(history))
    with _counting() as calls:
        asyncio.run(_replay(history))
    return calls


async def _replay(history: WorkflowHistory) -> None:
    # An executor of its own: a thread is watched from its start.
    with ThreadPoolExecutor(1) as executor:
        replayer = Replayer(
            workflows=WORKFLOWS, workflow_task_executor=executor, workflow_runner=UnsandboxedWorkflowRunner(),
            data_converter=pydantic_data_converter,
        )  # fmt: skip
        await replayer.replay_workflow(history)


@contextmanager
def _counting() -> Iterator[Counter[str]]:
    """Count the calls of our functions in threads that begin in the block."""
    calls = Counter[str]()

    def profile(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(FOLDERS):
            calls[code.co_qualname] += 1

    before = sys.getprofile()
    threading.setprofile(profile)
    try:
        yield calls
    finally:
        threading.setprofile(before)
