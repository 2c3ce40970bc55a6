"""Plans of any size: ten thousand steps, large values, many runs of the workflow. The long ones are benchmarks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from temporalio.client import Client

from plansurvive.activities.tools.registry import load_tools
from plansurvive.client import runs
from plansurvive.plans.run import Options
from plansurvive.runtime.connect import connect
from plansurvive.runtime.settings import Settings
from plansurvive.worker import build
from tests.kit.driving import Plans, step
from tests.kit.waiting import until
from tests.nightly import only_nightly
from tests.test_worker import line, worker_process

STEPS = 10_000


@pytest_asyncio.fixture
async def plans(temporal_client: Client, settings: Settings, workspace: Path) -> AsyncIterator[Plans]:
    """Plans whose tools make and measure long texts."""
    async with build(temporal_client, settings, load_tools(["benchmarks.tools"]), indexed=True):
        yield Plans(temporal_client, settings.task_queue, workspace)


def waiting(count: int) -> list[dict[str, Any]]:
    """More than 2 MB of steps that all depend on one step awaiting approval."""
    noop = {"tool": "noop", "description": "wait for the first step, and do nothing at all " * 4}
    first = {"id": "s0", **noop, "args": {"number": 0}, "requiresApproval": True}
    return [
        first,
        *({"id": f"s{n}", **noop, "args": {"number": n}, "dependsOn": ["s0"]} for n in range(1, count)),
    ]


@pytest.mark.slow
async def test_a_plan_of_ten_thousand_steps_is_started_shown_and_ended(
    environ: dict[str, str], settings: Settings, workspace: Path, queue: str
) -> None:
    temporal_client = await connect(settings)
    async with worker_process(environ | {"PLANS_TOOLS": "benchmarks.tools"}) as process:
        await line(process)
        await start_show_and_cancel(temporal_client, workspace, queue)
        assert peak_memory(process.pid) < 400_000_000


async def start_show_and_cancel(temporal_client: Client, workspace: Path, queue: str) -> None:
    """Start a big plan, query it while it awaits approval, and cancel it."""
    options = Options(workspace=str(workspace))
    steps = waiting(STEPS)
    started = await runs.start(temporal_client, {"steps": steps}, options=options, plan_id=queue, queue=queue)

    async def asks() -> bool:
        return "s0" in (await listed(temporal_client, queue))

    await until(asks, "the first step waits")
    view = await runs.show(temporal_client, queue)
    assert view.counts == {"total": STEPS, "blocked": STEPS - 1, "ready": 1}
    text = await runs.text(temporal_client, queue, 100)
    assert "awaiting approval" in text
    assert len(text.splitlines()) < 250
    assert f"{STEPS - 99:,} blocked" in text
    events = [event async for event in temporal_client.get_workflow_handle(started.workflow_id).fetch_history_events()]
    assert len(events) < 25
    assert sum(event.ByteSize() for event in events) < 60_000
    await runs.cancel(temporal_client, queue)
    summary = await runs.wait(temporal_client, queue)
    assert (summary.status, summary.counts["blocked"]) == ("cancelled", STEPS)


def peak_memory(pid: int) -> int:
    """Peak memory of a process in bytes."""
    rows = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(row.split()[1]) * 1024 for row in rows if row.startswith("VmHWM:"))


async def listed(client: Client, plan: str) -> list[str]:
    """The steps of a plan that are awaiting approval, from the visibility index."""
    found = [each async for each in runs.list_plans(client, running=True) if each.plan_id == plan]
    return list(found[0].waiting or []) if found else []


@pytest.mark.parametrize(("count", "size"), [only_nightly(200, 10_000), (20, 10_000), (10, 5_000_000)])
async def test_large_values_pass_from_step_to_step_and_history_stays_small(plans: Plans, count: int, size: int) -> None:
    made = [{"id": f"m{n}", "tool": "make_text", "args": {"size": size, "mark": n}} for n in range(count)]
    taken = [{"id": f"t{n}", "tool": "measure_text", "args": {"text": f"$m{n}"}} for n in range(count)]
    started = await plans.start([*made, *taken])
    view = await started.ended()
    assert view["status"] == "completed", view["log"]
    assert all(step(view, f"t{n}")["result"]["value"] == size for n in range(count))
    assert sum(event.ByteSize() for event in await started.events()) < 1_000_000


@pytest.mark.parametrize(("count", "limit"), [(80, 80), only_nightly(300, 300)])
async def test_a_long_chain_goes_over_many_runs_of_the_workflow_and_loses_nothing(
    plans: Plans, count: int, limit: int
) -> None:
    steps = [
        {"id": f"s{n}", "tool": "noop", "args": {"number": n}, "dependsOn": [f"s{n - 1}"] if n else []}
        for n in range(count)
    ]
    started = await plans.start(steps, {"historyLimit": limit})
    view = await started.ended()
    assert [step["result"]["value"] for step in view["steps"]] == list(range(count))
    histories = await started.histories()
    assert len(histories) > 4
    assert max(len(history.events) for history in histories) < limit + 100


@pytest.mark.parametrize("count", [20, only_nightly(100)])
async def test_many_plans_wait_without_events_and_all_go_on(plans: Plans, count: int) -> None:
    ask = {"id": "ask", "tool": "now", "requiresApproval": True}
    waiting_plans = [await plans.start([ask]) for _ in range(count)]
    for each in waiting_plans:
        await each.until_asked("ask")
    lengths = [(await each.handle.describe()).history_length for each in waiting_plans]
    assert max(lengths) < 20
    for each in waiting_plans:
        await each.approve("ask")
    for each in waiting_plans:
        assert (await each.ended())["status"] == "completed"
