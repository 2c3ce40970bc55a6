"""kill -9 of worker, server or both while a plan runs in segments: no call is lost, no effect happens twice.

Half of the calls change files: a file is created, then edited; the edit twice would show in its content. The others
append their names to a list, so that a finished one that ran again shows as well. PLANS_CHAOS_KILLS=200 kills as often,
over 5,000 steps.
"""

from __future__ import annotations

import shutil
import signal
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.enums.v1 import PendingActivityState

from plansurvive.features.express.journal import FOLDER
from plansurvive.features.express.model import SEGMENT
from plansurvive.runtime.base.wait import try_lock
from plansurvive.runtime.connect import connect
from plansurvive.runtime.server import HOST
from plansurvive.runtime.settings import Settings
from tests.chaos.conftest import KILLS, Chaos, WorkerProcess
from tests.kit import LEDGER_TOOLS
from tests.kit.driving import Started, step
from tests.kit.waiting import until
from tests.workflows.quick_tools import CALLS

pytestmark = [pytest.mark.slow, pytest.mark.uses("express")]
ITEMS = max(200, 25 * KILLS // 4)
SIDE_BY_SIDE = 4
STARTED = PendingActivityState.PENDING_ACTIVITY_STATE_STARTED
QUICK_TOOLS = str(Path(__file__).parents[1] / "workflows/quick_tools.py")


def steps() -> list[dict[str, Any]]:
    """For each item two calls that change a file, and two that leave a trace of having run."""
    inner: list[dict[str, Any]] = [
        {"id": "create", "tool": "write_file", "args": {"path": "out/{{item}}", "content": "-a-"}},
        {"id": "first", "tool": "tick", "args": {"name": "first-{{item}}", "seconds": 0.01}, "dependsOn": ["create"]},
        {
            "id": "change",
            "tool": "edit_file",
            "args": {"path": "out/{{item}}", "oldText": "a", "newText": "aa"},
            "dependsOn": ["first"],
        },
        {"id": "last", "tool": "tick", "args": {"name": "last-{{item}}", "seconds": 0.01}, "dependsOn": ["change"]},
    ]
    return [{"id": "each", "forEach": {"items": list(range(ITEMS)), "maxParallel": SIDE_BY_SIDE}, "steps": inner}]


def ran(chaos: Chaos) -> Counter[str]:
    """How often each call of `tick` has begun."""
    path = chaos.plans.workspace / CALLS
    return Counter(path.read_text().split() if path.exists() else [])


async def begun(chaos: Chaos) -> Started:
    """The plan, with a worker."""
    chaos.worker.environ["PLANS_TOOLS"] = f"{LEDGER_TOOLS},{QUICK_TOOLS}"
    await chaos.worker.up()
    return await chaos.plans.start(steps(), express=True)


def moments(chaos: Chaos, count: int) -> list[int]:
    """Numbers of calls at which something happens to the processes."""
    return sorted(chaos.chance.sample(range(5, 2 * ITEMS - 20), count))


async def came_to(chaos: Chaos, size: int) -> None:
    """Wait for so many calls."""
    await until(lambda: ran(chaos).total() >= size, f"{size} calls")


async def killed(chaos: Chaos, environ: dict[str, str], kills: int, *, keeps_journal: bool) -> Counter[str]:
    """Run the plan while processes are killed; how often each call has begun."""
    plan = await begun(chaos)
    for size in moments(chaos, kills):
        await came_to(chaos, size)
        victim = chaos.chance.choice(["worker", "server", "both"]) if keeps_journal else "worker"
        if victim != "server":
            chaos.worker.kill()
        if victim != "worker":
            chaos.server.kill()
            await chaos.server.up()
        if not keeps_journal:
            shutil.rmtree(Path(environ["PLANS_STATE_DIR"], FOLDER))
        if victim != "server":
            await chaos.worker.up()
    await ended_whole(chaos, environ, plan)
    return ran(chaos)


async def ended_whole(chaos: Chaos, environ: dict[str, str], plan: Started) -> None:
    """The plan completes in segments, and leaves every file as one run does."""
    client = await connect(Settings.read(environ | {"TEMPORAL_ADDRESS": f"{HOST}:{chaos.server.port}"}))
    view = await Started(client, plan.id).ended()
    assert (view["status"], step(view, "each")["inside"]["counts"]) == ("completed", {"completed": ITEMS}), view["log"]
    assert [each["code"] for each in view["log"] if each.get("code")] == []
    assert {path.read_text() for path in (chaos.plans.workspace / "out").iterdir()} == {"-aa-"}
    assert len(list((chaos.plans.workspace / "out").iterdir())) == ITEMS
    assert ran(chaos).keys() == {f"{part}-{item}" for part in ("first", "last") for item in range(ITEMS)}


def again(calls: Counter[str]) -> int:
    """How many calls began that had begun before."""
    return sum(times - 1 for times in calls.values())


async def test_no_call_is_lost_and_only_what_was_under_way_runs_again(chaos: Chaos, environ: dict[str, str]) -> None:
    assert again(await killed(chaos, environ, KILLS, keeps_journal=True)) <= KILLS * SIDE_BY_SIDE


async def test_control_without_the_journal_finished_calls_run_again(chaos: Chaos, environ: dict[str, str]) -> None:
    kills = min(KILLS, 5)
    assert again(await killed(chaos, environ, kills, keeps_journal=False)) > kills * SIDE_BY_SIDE


async def test_a_frozen_worker_that_wakes_up_adds_nothing(chaos: Chaos, environ: dict[str, str]) -> None:
    zombies = max(3, KILLS // 10)
    # A frozen worker holds on to what the server has promised to its polls: let it ask for one activity at a time.
    chaos.worker.environ["PLANS_MAX_ACTIVITIES"] = "1"
    plan = await begun(chaos)
    worker = chaos.worker
    try:  # the first is killed by its fixture
        for number, size in enumerate(moments(chaos, zombies)):
            await came_to(chaos, size)
            log = chaos.worker.log.with_name(f"worker-{number}.log")
            frozen, worker = worker, replace(chaos.worker, log=log, running=None, starts=0)
            await until(partial(is_frozen, frozen, environ, plan), "it is frozen in a segment, and has locked nothing")
            await worker.up()
            await came_to(chaos, ran(chaos).total() + SIDE_BY_SIDE + 1)
            sent(frozen, signal.SIGCONT)
            assert await frozen.stop() == 0
        await ended_whole(chaos, environ, plan)
        assert again(ran(chaos)) <= zombies * SIDE_BY_SIDE
    finally:
        worker.kill()


async def is_frozen(worker: WorkerProcess, environ: dict[str, str], plan: Started) -> bool:
    """Freeze a worker in a segment, if that is not in the middle of a write: it would keep all others from writing.

    That is: into a database, or into the files of as many calls as are made side by side.
    """
    sent(worker, signal.SIGSTOP)
    # On a busy machine a thread goes on for a while, and may begin a write.
    await until(partial(is_stopped, worker), "all its threads have stopped", every=0.001)
    state = Path(environ["PLANS_STATE_DIR"])
    try:
        for database in (state / FOLDER / "journal.db", state / "effects" / "log.db"):
            with closing(sqlite3.connect(database, timeout=0.0, isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
        is_writing = any(not is_free(file) for file in (state / "effects" / "locks").iterdir())
    except sqlite3.OperationalError:
        is_writing = True
    frozen = not is_writing and await is_in_segment(plan)
    if not frozen:
        sent(worker, signal.SIGCONT)
    return frozen


async def is_in_segment(plan: Started) -> bool:
    """Whether a worker has a segment of the plan, as the server knows it."""
    described = await plan.handle.describe()
    pending = described.raw_description.pending_activities
    return any(each.activity_type.name == SEGMENT and each.state == STARTED for each in pending)


def is_free(file: Path) -> bool:
    """Whether a file is locked by no process."""
    with file.open("rb") as opened:
        return try_lock(opened.fileno())


def is_stopped(worker: WorkerProcess) -> bool:
    """Whether every thread of a worker has stopped (proc_pid_stat(5), field 3), which takes a while."""
    assert worker.running is not None
    threads = Path(f"/proc/{worker.running.pid}/task").iterdir()
    return all((thread / "stat").read_text().rpartition(") ")[2].startswith("T") for thread in threads)


def sent(worker: WorkerProcess, number: signal.Signals) -> None:
    """Send a signal to a worker."""
    assert worker.running is not None
    worker.running.send_signal(number)
