"""A worker is frozen in the middle of a step, the step is given to another, and the frozen one wakes up.

It goes on as if nothing had been: the server refuses its result, and the tools must see to it that its effect neither
happens twice nor undoes what was done since. The control is a tool that appends without looking: its effect doubles.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.chaos.conftest import Chaos, WorkerProcess
from tests.chaos.faults import command
from tests.kit.driving import Started, statuses
from tests.kit.waiting import until
from tests.nightly import only_nightly, only_sampled

FREE: dict[str, Any] = {"requiresApproval": False}


@dataclass
class Two:
    """The worker that freezes, and the one that takes over: both of a queue that steps are bound to.

    A third one runs the plan. The frozen one holds on to what the server has promised it, so it asks for one step only.
    """

    frozen: WorkerProcess
    other: WorkerProcess
    chaos: Chaos

    async def freeze(self, tool: str, point: str, steps: list[dict[str, Any]]) -> Started:
        """A plan whose first step has frozen its worker, with the other worker at hand."""
        self.frozen.command = command(f"{tool}:{point}", "stop")
        await asyncio.gather(self.chaos.worker.up(), self.frozen.up())
        queue = self.frozen.environ["PLANS_TASK_QUEUE"]
        plan = await self.chaos.plans.start([{**step, "queue": queue} for step in steps])
        await until(lambda: _state(self.frozen) == "T", "the worker is frozen")
        await self.other.up()
        return plan

    async def wake(self) -> None:
        """Let the first go on, and end once it has done what it was about to do."""
        assert self.frozen.running is not None
        self.frozen.running.send_signal(signal.SIGCONT)
        assert await self.frozen.stop() == 0


@pytest_asyncio.fixture(loop_scope="session")
async def two(chaos: Chaos, queue: str, tmp_path: Path) -> AsyncIterator[Two]:
    """Neither runs yet."""
    more = {"PLANS_TASK_QUEUE": f"{queue}-files", "PLANS_MAX_ACTIVITIES": "1"}
    made = [
        replace(chaos.worker, environ={**chaos.worker.environ, **more}, log=tmp_path / name)
        for name in ("frozen.log", "other.log")
    ]
    yield Two(made[0], made[1], chaos)
    for worker in made:
        worker.kill()


def _state(worker: WorkerProcess) -> str:
    assert worker.running is not None
    return Path(f"/proc/{worker.running.pid}/stat").read_text().rpartition(")")[2].split()[0]


def _file(step_id: str, tool: str, **args: Any) -> dict[str, Any]:
    return {"id": step_id, "tool": tool, "args": args, **FREE}


LATE = {
    "write_file": (
        [_file("first", "write_file", path="new", content="one\n")],
        _file("next", "edit_file", path="new", oldText="one", newText="two"),
        {"old": "-a-\n", "new": "two\n"},
    ),
    "edit_file": (
        [_file("first", "edit_file", path="old", oldText="a", newText="aa")],
        _file("next", "edit_file", path="old", oldText="-aa-", newText="-a-"),
        {"old": "-a-\n"},
    ),
    "delete_file": (
        [_file("first", "delete_file", path="old")],
        _file("next", "write_file", path="old", content="new\n"),
        {"old": "new\n"},
    ),
}
"""What the frozen worker was about to do, what the other does after it, and what must be there in the end."""


@pytest.mark.parametrize("tool", [only_nightly(tool) for tool in LATE])
async def test_a_worker_that_wakes_up_late_undoes_nothing_that_was_done_since(two: Two, tool: str) -> None:
    steps, following, expected = LATE[tool]
    (two.chaos.plans.workspace / "old").write_text("-a-\n")
    plan = await two.freeze(tool, "before_lock", [*steps, {**following, "dependsOn": ["first"]}])
    view = await plan.ended()
    assert statuses(view) == {"first": "completed", "next": "completed"}
    assert _files(two) == expected
    await two.wake()
    assert _files(two) == expected


@pytest.mark.parametrize("point", [only_nightly("after_intent"), only_sampled("after_swap")])
async def test_a_worker_frozen_with_a_file_locked_finishes_its_effect_and_no_other_does(two: Two, point: str) -> None:
    (two.chaos.plans.workspace / "old").write_text("-a-\n")
    plan = await two.freeze("edit_file", point, LATE["edit_file"][0])
    await until(lambda: _attempt(plan, 2), "another worker has the step")
    await two.wake()
    assert statuses(await plan.ended()) == {"first": "completed"}
    assert _files(two) == {"old": "-aa-\n"}


@pytest.mark.slow
async def test_a_tool_that_only_appends_doubles_its_effect(two: Two) -> None:
    plan = await two.freeze("append", "before_effect", [{"id": "first", "tool": "append", "args": {"text": "once"}}])
    assert statuses(await plan.ended()) == {"first": "completed"}
    assert two.chaos.plans.ledger == [["once"]]
    await two.wake()
    assert two.chaos.plans.ledger == [["once"], ["once"]]


async def _attempt(plan: Started, number: int) -> bool:
    """Whether the server has started so many attempts of the step that runs."""
    pending = (await plan.handle.describe()).raw_description.pending_activities
    return any(activity.attempt >= number and activity.HasField("last_started_time") for activity in pending)


def _files(two: Two) -> dict[str, str]:
    """All that the workspace holds, what should have been removed included."""
    return {path.name: path.read_text() for path in two.chaos.plans.workspace.iterdir()}
