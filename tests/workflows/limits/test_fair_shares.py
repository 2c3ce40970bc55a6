"""Who is served first when more is queued than the worker can run: the small owner beside the big one, and priority 1.

What is counted is how much of the big owner's queue was done when the others were, not how long that took. The control
is a server without fairness.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter

from plansurvive.activities.tools.registry import load_tools
from plansurvive.client import runs
from plansurvive.plans.model.shares import Fairness
from plansurvive.plans.run import Options
from plansurvive.runtime.settings import Settings
from plansurvive.worker import build
from tests.kit import LEDGER_TOOLS
from tests.kit.driving import LEDGER
from tests.kit.servers import development_server
from tests.kit.waiting import connected, until

pytestmark = [pytest.mark.slow, pytest.mark.modes("plain"), pytest.mark.on_server("priorities and fair shares")]
BIG, SMALL = 120, 8
UNFAIR = "matching.enableFairness=false"


async def start(client: Client, queue: str, name: str, options: Options) -> str:
    """Start a plan of one step."""
    plan: dict[str, Any] = {"steps": [{"id": "a", "tool": "work", "args": {"name": name, "seconds": 0.1}}]}
    return (await runs.start(client, plan, options=options, queue=queue, plan_id=name)).plan_id


async def done_before(
    binary: Path, directory: Path, settings: Settings, workspace: Path, others: Options, *dynamic: str
) -> int:
    """How many of the big owner's plans were done when the last of the others was, which were queued behind them."""
    async with development_server(binary, directory, *dynamic) as server:
        client = await connected(server.address, data_converter=pydantic_data_converter)
        big = Options(workspace=str(workspace), fairness=Fairness(key="big"))
        queue = settings.task_queue
        await asyncio.gather(*(start(client, queue, f"big-{number}", big) for number in range(BIG)))
        mine = others.model_copy(update={"workspace": str(workspace)})
        names = [await start(client, queue, f"other-{number}", mine) for number in range(SMALL)]
        async with build(client, settings.with_flags(max_activities=4), load_tools([LEDGER_TOOLS]), indexed=True):
            await until(lambda: set(names) <= set(ended(workspace)), "the others are done")
            return sum(name.startswith("big") for name in before(ended(workspace), names))


def ended(workspace: Path) -> list[str]:
    """The steps that have ended, in order."""
    path = workspace / LEDGER
    rows = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
    return [row[1] for row in rows if row[0] == "end"]


def before(order: Sequence[str], names: Sequence[str]) -> Sequence[str]:
    """What comes before the last of the names."""
    return order[: max(order.index(name) for name in names)]


@pytest.mark.in_turn
async def test_a_small_owner_does_not_wait_for_the_queue_of_a_big_one(
    temporal_binary: Path, tmp_path: Path, settings: Settings, workspace: Path
) -> None:
    small = Options(fairness=Fairness(key="small"))
    assert await done_before(temporal_binary, tmp_path, settings, workspace, small) < BIG / 2


async def test_without_fairness_it_would_wait(
    temporal_binary: Path, tmp_path: Path, settings: Settings, workspace: Path
) -> None:
    small = Options(fairness=Fairness(key="small"))
    assert await done_before(temporal_binary, tmp_path, settings, workspace, small, UNFAIR) > BIG * 3 / 4


@pytest.mark.in_turn
async def test_plans_of_priority_one_come_before_what_was_queued_earlier(
    temporal_binary: Path, tmp_path: Path, settings: Settings, workspace: Path
) -> None:
    urgent = Options(fairness=Fairness(key="big"), priority=1)
    assert await done_before(temporal_binary, tmp_path, settings, workspace, urgent) < BIG / 2
