"""kill -9 at any moment: the plan goes on, and no finished step runs again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType

from tests.chaos.conftest import KILLS, Chaos
from tests.kit.driving import Started, statuses, step, work
from tests.kit.waiting import until
from tests.nightly import only_nightly, only_sampled


def thirty_steps() -> list[dict[str, Any]]:
    """Ten rows of a ledger entry, a file made from its value, and another entry; each row needs the one before."""
    steps: list[dict[str, Any]] = []
    for row in range(10):
        before = [f"last{row - 2}"] if row > 1 else []
        steps += [
            work(f"first{row}", *before, seconds=0.1),
            {
                "id": f"file{row}",
                "tool": "write_file",
                "args": {"path": f"out/{row}.txt", "content": f"{{{{first{row}}}}}\n"},
            },
            work(f"last{row}", f"file{row}", seconds=0.1),
        ]
    return steps


@pytest.mark.parametrize("kills", [only_sampled(1), only_nightly(KILLS - 1)])
async def test_thirty_steps_survive_workers_that_are_killed(chaos: Chaos, kills: int) -> None:
    await chaos.worker.up()
    plan = await chaos.plans.start(thirty_steps())
    settled: dict[str, list[str]] = {}
    for size in _moments(chaos, kills):
        await until(_grown(chaos, size), f"{size} lines in the ledger")
        chaos.worker.kill()
        settled |= await _settled(chaos, plan)
        await chaos.worker.up()
    await _assert_complete(chaos, plan, settled)


@pytest.mark.parametrize("kills", [only_sampled(1), only_nightly(KILLS - 1)])
async def test_thirty_steps_survive_a_server_that_is_killed(chaos: Chaos, kills: int) -> None:
    await chaos.worker.up()
    plan = await chaos.plans.start(thirty_steps())
    for size in _moments(chaos, kills):
        await until(_grown(chaos, size), f"{size} lines in the ledger")
        chaos.server.kill()
        await chaos.server.up()
    await _assert_complete(chaos, plan, {})


@pytest.mark.slow
async def test_both_killed_together_lose_nothing(chaos: Chaos) -> None:
    await chaos.worker.up()
    plan = await chaos.plans.start(thirty_steps())
    (size,) = _moments(chaos, 1)
    await until(_grown(chaos, size), f"{size} lines in the ledger")
    chaos.worker.kill()
    chaos.server.kill()
    await chaos.server.up()
    settled = await _settled(chaos, plan)
    await chaos.worker.up()
    await _assert_complete(chaos, plan, settled)


@pytest.mark.slow
async def test_the_death_of_a_worker_uses_up_no_attempt(chaos: Chaos) -> None:
    steps = [work("once", seconds=4.0, retry={"attempts": 1, "delay": 0.01}), work("after", "once")]
    plan = await chaos.plans.start(steps)
    for kill in range(KILLS - 1):
        await chaos.worker.up()
        await until(_started(chaos, "once", kill + 1), f"attempt {kill + 1}")
        chaos.worker.kill()
    await chaos.worker.up()
    view = await plan.ended()
    assert statuses(view) == {"once": "completed", "after": "completed"}
    assert step(view, "once")["result"]["attempt"] == 1
    assert _starts(chaos, "once") == KILLS
    assert _starts(chaos, "after") == 1


@pytest.mark.slow
async def test_an_approval_and_a_timer_outlive_every_process(chaos: Chaos) -> None:
    steps = [work("gate", requiresApproval=True), {"id": "nap", "tool": "sleep", "args": {"seconds": 1.0}}]
    await chaos.worker.up()
    plan = await chaos.plans.start([*steps, work("last", "gate", "nap")])
    await plan.until_asked("gate")
    chaos.worker.kill()
    await plan.approve("gate", by="ann")
    chaos.server.kill()
    await chaos.server.up()
    await chaos.worker.up()
    view = await plan.ended()
    assert statuses(view) == {"gate": "completed", "nap": "completed", "last": "completed"}


def _moments(chaos: Chaos, count: int) -> list[int]:
    """Sizes of the ledger (40 lines in the end) at which to kill."""
    return sorted(chaos.chance.sample(range(2, 36), count))


def _grown(chaos: Chaos, size: int) -> Callable[[], bool]:
    return lambda: len(chaos.plans.ledger) >= size


def _started(chaos: Chaos, name: str, times: int) -> Callable[[], bool]:
    return lambda: _starts(chaos, name) == times


def _starts(chaos: Chaos, name: str) -> int:
    return sum(line[:2] == ["start", name] for line in chaos.plans.ledger)


async def _settled(chaos: Chaos, plan: Started) -> dict[str, list[str]]:
    """The steps whose activity has completed, with their lines in the ledger."""
    done = [name for name, (_, completed) in (await _attempts(plan)).items() if completed]
    return {name: _lines(chaos, name) for name in done}


def _lines(chaos: Chaos, name: str) -> list[str]:
    return [" ".join(line) for line in chaos.plans.ledger if line[1] == name]


async def _attempts(plan: Started) -> dict[str, tuple[int, bool]]:
    """Per activity: the server's attempts, and whether it completed."""
    names: dict[int, str] = {}
    found: dict[str, tuple[int, bool]] = {}
    for event in await plan.events():
        started, completed = (
            event.activity_task_started_event_attributes,
            event.activity_task_completed_event_attributes,
        )
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
            names[event.event_id] = event.activity_task_scheduled_event_attributes.activity_id
        elif event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED:
            found[names[started.scheduled_event_id]] = (started.attempt, False)
        elif event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
            name = names[completed.scheduled_event_id]
            found[name] = (found[name][0], True)
    return found


async def _assert_complete(chaos: Chaos, plan: Started, settled: dict[str, list[str]]) -> None:
    """Completed; ledger, files and history agree; what had finished before a kill never ran again."""
    view = await plan.ended()
    assert view["status"] == "completed", f"seed {chaos.seed}: {statuses(view)}"
    attempts = await _attempts(plan)
    for name in [name for name in statuses(view) if not name.startswith("file")]:
        tried, completed = attempts[name]
        ends = Counter(line for line in _lines(chaos, name) if line.startswith("end"))
        assert completed
        assert ends[f"end {name} {tried}"] == 1, f"seed {chaos.seed}: {name} completed at attempt {tried}: {ends}"
        assert tried > 1 or _lines(chaos, name) == [f"start {name} 1", f"end {name} 1"], f"seed {chaos.seed}"
    for name, lines in settled.items():
        assert _lines(chaos, name) == lines, f"seed {chaos.seed}: {name} ran again"
    for row in range(10):
        assert (chaos.plans.workspace / f"out/{row}.txt").read_text() == f"first{row}\n"
