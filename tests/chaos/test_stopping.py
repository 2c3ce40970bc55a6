"""A worker asked to stop: running steps end or are handed back, the exit code is 0, and nothing is left behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.chaos.conftest import Chaos
from tests.kit.driving import statuses, step, work
from tests.kit.host import a_nap, running
from tests.kit.waiting import until


@pytest.mark.slow
async def test_a_step_that_ends_within_the_grace_is_finished(chaos: Chaos) -> None:
    await chaos.worker.up()
    plan = await chaos.plans.start([work("short", seconds=1.0), work("after", "short")])
    await until(lambda: chaos.plans.ledger, "the step has started")
    assert await chaos.worker.stop() == 0
    assert chaos.plans.ledger[:2] == [["start", "short", "1"], ["end", "short", "1"]]
    await chaos.worker.up()
    view = await plan.ended()
    assert statuses(view) == {"short": "completed", "after": "completed"}
    assert [name for what, name, _ in chaos.plans.ledger if what == "start"] == ["short", "after"]


@pytest.mark.slow
async def test_a_step_that_takes_longer_is_handed_back_with_nothing_left_running(chaos: Chaos) -> None:
    nap = a_nap()
    args = {"command": f"(setsid sh -c 'exec {nap}' &); [ -e go ] || {nap}"}
    chaos.worker.environ["PLANS_GRACE"] = "0.5"
    await chaos.worker.up()
    retry = {"attempts": 1, "delay": 0.1}
    plan = await chaos.plans.start(
        [{"id": "long", "tool": "run_command", "args": args, "requiresApproval": False, "retry": retry}]
    )
    await until(lambda: len(running(nap)) == 2, "the command runs")
    worker = chaos.worker.running
    assert worker is not None
    assert await chaos.worker.stop() == 0
    assert running(nap) == []
    assert _session(worker.pid) == []
    (chaos.plans.workspace / "go").touch()
    await chaos.worker.up()
    view = await plan.ended()
    assert statuses(view) == {"long": "completed"}
    assert step(view, "long")["result"]["attempt"] == 1


@pytest.mark.slow
async def test_a_killed_worker_takes_its_commands_with_it(chaos: Chaos) -> None:
    nap = a_nap()
    command = f"(setsid sh -c 'exec {nap}' &); [ -e go ] || {nap}"
    await chaos.worker.up()
    plan = await chaos.plans.start(
        [{"id": "long", "tool": "run_command", "args": {"command": command}, "requiresApproval": False}]
    )
    await until(lambda: len(running(nap)) == 2, "the command runs")
    chaos.worker.kill()
    await until(lambda: not running(nap), "the command's processes are gone")
    (chaos.plans.workspace / "go").touch()
    await chaos.worker.up()
    assert statuses(await plan.ended()) == {"long": "completed"}


def _session(leader: int) -> list[int]:
    """Processes of the session that `leader` led."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if os.getsid(int(entry.name)) == leader:
                    found.append(int(entry.name))
            except ProcessLookupError:
                continue
    return found
