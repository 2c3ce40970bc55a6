"""What was due while the server was down: started when it is back, as far as it lies within the catch-up window.

A real server with its data on disk is stopped and started again, like that of a machine that sleeps.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.client import Client

from plansurvive.activities.tools.registry import load_tools
from plansurvive.apps.schedules.create import Rules
from plansurvive.apps.schedules.spec import Timing
from plansurvive.apps.schedules.views import show_schedule
from plansurvive.runtime import server
from plansurvive.runtime.connect import reach
from plansurvive.runtime.settings import Settings
from plansurvive.worker import build
from tests.apps.schedules.driving import LOOK, Schedules
from tests.kit.waiting import until

pytestmark = pytest.mark.slow
BUFFERED = Rules(overlap="buffer")
EVERY = 2
"""Seconds between two runs."""


@pytest_asyncio.fixture
async def embedded(state_dir: Path, temporal_binary: Path, caches: dict[str, str]) -> AsyncIterator[Settings]:
    """Settings that lead to an embedded server; it is stopped at the end."""
    binary = {"PATH": f"{temporal_binary.parent}:/usr/bin:/bin"}
    found = Settings.read({**caches, **binary, "PLANS_STATE_DIR": str(state_dir), "PLANS_SERVER": "embedded"})
    try:
        yield found
    finally:
        await server.stop(found)


async def connected(settings: Settings) -> Client:
    """A client of the embedded server, which is started if it is not running."""
    return (await reach(settings, print)).client


async def times(schedules: Schedules, name: str) -> list[datetime]:
    """The times of all runs of a schedule, in order."""
    found = [each.plan_id.removeprefix(f"{name}-") for each in await schedules.runs(name)]
    return sorted(datetime.fromisoformat(each) for each in found)


async def stopped_for(settings: Settings, missed: int) -> tuple[datetime, datetime]:
    """Stop the server until so many runs were due; returns when it was stopped, and when it was started again."""
    await server.stop(settings)
    begin = datetime.now(UTC)
    end = begin + timedelta(seconds=EVERY * (missed + 1))
    await until(lambda: datetime.now(UTC) >= end, f"{missed} runs were due")
    return begin, datetime.now(UTC)


async def test_runs_that_were_missed_while_the_server_was_down_are_made_up_for(
    embedded: Settings, workspace: Path
) -> None:
    client = await connected(embedded)
    schedules = Schedules(client, embedded.task_queue, workspace)
    name = await schedules.create(LOOK, timing=Timing(every=[f"{EVERY}s"]), rules=BUFFERED)
    async with build(client, embedded, load_tools(()), indexed=True):
        await until(lambda: times(schedules, name), "it has begun")
    begin, end = await stopped_for(embedded, missed=3)
    later = Schedules(await connected(embedded), embedded.task_queue, workspace, [name])
    async with build(later.client, embedded, load_tools(()), indexed=True):

        async def missed() -> list[datetime]:
            return [time for time in await times(later, name) if begin <= time <= end]

        async def all_made_up_for() -> bool:
            return len(await missed()) >= 3 and (await times(later, name))[-1] > end

        await until(all_made_up_for, "the missed runs, and the next one")
        found = await missed()
        assert {after - before for before, after in pairwise(found)} == {timedelta(seconds=EVERY)}
        assert (await show_schedule(later.client, name)).missed == 0
        await later.clear()


async def test_what_is_later_than_the_catch_up_window_is_not_started(embedded: Settings, workspace: Path) -> None:
    client = await connected(embedded)
    schedules = Schedules(client, embedded.task_queue, workspace)
    rules = Rules(overlap="buffer", catchup=timedelta(seconds=10))
    name = await schedules.create(LOOK, timing=Timing(every=[f"{EVERY}s"]), rules=rules)
    async with build(client, embedded, load_tools(()), indexed=True):
        await until(lambda: times(schedules, name), "it has begun")
    begin, end = await stopped_for(embedded, missed=8)
    later = Schedules(await connected(embedded), embedded.task_queue, workspace, [name])
    async with build(later.client, embedded, load_tools(()), indexed=True):

        async def goes_on() -> bool:
            return bool(found := await times(later, name)) and found[-1] > end

        await until(goes_on, "the next run after the server is back")
        found = [time for time in await times(later, name) if begin <= time <= end]
        view = await show_schedule(later.client, name)
        assert view.missed >= 3  # 16 seconds without a server, and 10 of them within the window
        assert 1 <= len(found) <= 5
        assert min(found) > begin + timedelta(seconds=EVERY)
        await later.clear()
