"""Four worker processes under a limit of 60 a minute: never above in any minute, and at least 57 of them used.

The second test kills workers meanwhile, the one that keeps the limits among them; then no minute is ever fuller either.
"""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.chaos.conftest import Chaos, WorkerProcess
from tests.kit.driving import Started
from tests.kit.waiting import until

RATE, MINUTE = 60, 60.0
MINUTES, CALLS = 3, 30


def begun(workspace: Path) -> list[float]:
    """When the calls of the tool `stamp` began, in order."""
    path = workspace / "ledger.txt"
    rows = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
    return sorted(float(row[0]) for row in rows if len(row) == 2 and not row[1].startswith("-"))


def fullest(times: list[float]) -> int:
    """The largest number of times in any minute."""
    return max(sum(first <= time < first + MINUTE for time in times) for first in times)


@pytest_asyncio.fixture(loop_scope="session")
async def four(chaos: Chaos, state_dir: Path, tmp_path: Path) -> AsyncIterator[list[WorkerProcess]]:
    """Four workers that share a limit."""
    (state_dir / "limits.toml").write_text(f'[tools.stamp]\nrate = "{RATE}/minute"\n')
    copies = [dataclasses.replace(chaos.worker, log=tmp_path / f"worker-{number}.log") for number in range(4)]
    try:
        for each in copies:
            await each.up()
        yield copies
    finally:
        for each in copies:
            each.kill()


async def started(chaos: Chaos, plans: int) -> list[Started]:
    """So many plans of CALLS calls, all of which want to begin at once."""
    steps: list[dict[str, Any]] = [{"id": f"s{at}", "tool": "stamp", "args": {"name": f"s{at}"}} for at in range(CALLS)]
    return [await chaos.plans.start(steps) for _ in range(plans)]


@pytest.mark.slow
async def test_four_workers_use_all_of_a_rate_and_never_more(chaos: Chaos, four: list[WorkerProcess]) -> None:
    views = [await plan.ended() for plan in await started(chaos, 7)]
    times = begun(chaos.plans.workspace)
    used = sum(time < times[0] + MINUTES * MINUTE for time in times) / MINUTES
    print(f"fullest minute: {fullest(times)}; used on average: {used:.1f} of {RATE} a minute")
    assert {view["status"] for view in views} == {"completed"}
    assert len(times) == 7 * CALLS
    assert fullest(times) <= RATE
    assert used >= 57
    assert {step["result"]["attempt"] for view in views for step in view["steps"]} == {1}


@pytest.mark.slow
async def test_a_rate_is_kept_while_the_workers_that_keep_it_are_killed(
    chaos: Chaos, four: list[WorkerProcess]
) -> None:
    plans = await started(chaos, 4)
    for size in (20, 50, RATE + 10):
        await until(lambda: len(begun(chaos.plans.workspace)) >= size, f"{size} calls have begun")  # noqa: B023
        victim = chaos.chance.choice(four)
        victim.kill()
        await victim.up()
    views = [await plan.ended() for plan in plans]
    times = begun(chaos.plans.workspace)
    print(f"fullest minute: {fullest(times)}; {len(times)} calls in {times[-1] - times[0]:.0f} s")
    assert {view["status"] for view in views} == {"completed"}
    assert fullest(times) <= RATE
