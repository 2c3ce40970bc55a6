"""Limits on a real server: rates and concurrency over several workers, what waiting is, and what it is not."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client
from temporalio.worker import Worker

from plansurvive.client.live.in_flight import in_flight
from plansurvive.features.limits.model import workflow_id
from plansurvive.features.limits.views import limits
from plansurvive.plans.views.models.live import attempt_text
from tests.kit.driving import WAITS, Plans, step, terminated
from tests.kit.waiting import connected, until

pytestmark = [
    pytest.mark.modes("plain"),
    pytest.mark.on_server("rates in real time, and several clients"),
    pytest.mark.uses("limits"),
]
MakeWorker = Callable[..., Worker]


def stamps(workspace: Path) -> list[tuple[float, str]]:
    """What the tool `stamp` wrote, in order."""
    rows = [line.split() for line in (workspace / "ledger.txt").read_text().splitlines()]
    return sorted((float(row[0]), row[1]) for row in rows if len(row) == 2)  # longer ones are of the tool `work`


def begun(workspace: Path) -> list[float]:
    """When the calls began."""
    return [time for time, name in stamps(workspace) if not name.startswith("-")]


def calls(number: int, **args: Any) -> list[dict[str, Any]]:
    """Steps that may all run at once."""
    return [{"id": f"s{at}", "tool": "stamp", "args": {"name": f"s{at}", **args}} for at in range(number)]


async def another(client: Client) -> Client:
    """A connection of its own, as another worker has."""
    return await connected(client.service_client.config.target_host, data_converter=client.data_converter)


@pytest_asyncio.fixture(autouse=True)
async def _limiter_ended(temporal_client: Client, queue: str) -> AsyncIterator[None]:
    yield
    await terminated(temporal_client, workflow_id(queue))


@pytest.fixture
def limited(tmp_path: Path) -> Callable[[str], Path]:
    """Writes a limits.toml."""

    def write(text: str) -> Path:
        path = tmp_path / "limits.toml"
        path.write_text(text)
        return path

    return write


@pytest.mark.slow
@pytest.mark.in_turn
async def test_four_workers_share_a_rate_and_waiting_is_no_attempt(
    idle: Plans, make_worker: MakeWorker, limited: Callable[[str], Path]
) -> None:
    file = limited('[tools.stamp]\nrate = "12/2 seconds"\n')
    async with AsyncExitStack() as workers:
        for _ in range(4):
            await workers.enter_async_context(make_worker(client=await another(idle.client), limits=file))
        view = await (plan := await idle.start(calls(30))).ended()
    assert view["status"] == "completed", view
    times = begun(idle.workspace)
    assert len(times) == 30
    assert all(later - first >= 2 for first, later in zip(times, times[12:], strict=False))
    assert {each["result"]["attempt"] for each in view["steps"]} == {1}
    kinds = [event.event_type for event in await plan.events()]
    assert EventType.EVENT_TYPE_TIMER_STARTED not in kinds
    assert kinds.count(EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED) == len(await plan.scheduled())


@pytest.mark.slow
@pytest.mark.in_turn
async def test_calls_with_different_keys_have_limits_of_their_own(
    idle: Plans, make_worker: MakeWorker, limited: Callable[[str], Path]
) -> None:
    file = limited('[tools.stamp]\nconcurrency = 1\nkey = "args.name"\n')
    async with make_worker(limits=file), make_worker(client=await another(idle.client), limits=file):
        same = [
            {**each, "id": f"again-{at}", "args": {**each["args"], "name": "s0"}} for at, each in enumerate(calls(2))
        ]
        plan = await idle.start([*calls(2, **WAITS), *same])
        await until(lambda: {"s0", "s1"} <= _now(idle.workspace), "calls of both keys run at the same time")
        idle.go()
        view = await plan.ended()
    assert view["status"] == "completed"
    of_one = [(time, name) for time, name in stamps(idle.workspace) if name.lstrip("-") == "s0"]
    assert [name for _, name in of_one] == ["s0", "-s0"] * 3


def _now(workspace: Path) -> set[str]:
    """The calls that run."""
    names = [name for _, name in stamps(workspace)] if (workspace / "ledger.txt").exists() else []
    return {name for name in names if names.count(name) > names.count(f"-{name}")}


async def test_a_step_that_waits_says_for_what_holds_no_slot_and_can_be_cancelled(
    idle: Plans, make_worker: MakeWorker, limited: Callable[[str], Path], temporal_client: Client
) -> None:
    file = limited('[tools.stamp]\nrate = "1/hour"\n')
    async with make_worker(limits=file, max_activities=1):
        waits = {"id": "second", "tool": "stamp", "args": {"name": "second"}, "dependsOn": ["s0"], "timeout": 1.0}
        free = {"id": "free", "tool": "work", "args": {"name": "free"}, "dependsOn": ["s0"]}
        plan = await idle.start([*calls(1), waits, free])

        async def waiting() -> str | None:
            found = [each for each in await in_flight(temporal_client, plan.id) if each.live.limit]
            texts = [attempt_text(each.live, each.live.next_at) for each in found if each.live.next_at]
            return texts[0] if texts else None

        text = await until(waiting, "the step waits for its limit")
        assert str(text).startswith("waits for the limit of tools.stamp: ")
        await plan.until_status("free", "completed")
        rows = await limits(temporal_client, queue=idle.queue)
        assert [(row.bucket, row.used, row.waiting) for row in rows] == [("tools.stamp", [1], 1)]
        assert rows[0].first == [f"{plan.id.removeprefix('plan-')} second"] or rows[0].first[0].endswith(" second")
        await plan.handle.cancel()
        view = await plan.ended()
    assert step(view, "second")["result"]["code"] == "CANCELLED"
    assert len(begun(idle.workspace)) == 1


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_server_that_asks_to_be_left_alone_is_left_alone_by_all_steps(
    idle: Plans, make_worker: MakeWorker, limited: Callable[[str], Path]
) -> None:
    file = limited('[tools.stamp]\nrate = "1000/second"\n')
    async with make_worker(limits=file):
        first = {"id": "busy", "tool": "stamp", "args": {"name": "busy", "busy": 1.5}}
        others = [{**each, "dependsOn": ["mark"]} for each in calls(3)]
        mark = {"id": "mark", "tool": "work", "args": {"name": "mark", "seconds": 0.3}}
        view = await idle.run([first, mark, *others])
    assert view["status"] == "completed"
    times = begun(idle.workspace)
    assert times[1] - times[0] >= 1.4
    assert step(view, "busy")["result"]["attempt"] == 2
