"""Plans of quick calls whose histories are kept: several windows, effects between them, calls that are not quick."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from tests.driving import Plans, Started, work

Scenario = Callable[[Plans], Awaitable[Started]]


def look(step_id: str, *needs: str, **more: Any) -> dict[str, Any]:
    """A step of a pure tool."""
    args = {"name": step_id, **more.pop("args", {})}
    return {"id": step_id, "tool": "look", "args": args, "dependsOn": list(needs), **more}


async def quick(plans: Plans) -> Started:
    """A chain over several workflow tasks, then many at once, one that fails at first and one that takes long."""
    chain = [look(f"s{n}", *([f"s{n - 1}"] if n else []), args={"seconds": 0.01}) for n in range(24)]
    many = [look(f"m{n}", "effect") for n in range(24)]
    failing = look("failing", *(each["id"] for each in many), args={"fails": 2}, retry={"attempts": 2, "delay": 0.01})
    slow, last = look("slow", "failing", args={"seconds": 0.3}), look("last", "slow", durable="step")
    started = await plans.start([*chain, work("effect", "s23"), *many, failing, slow, last], durable="batch")
    await started.ended()
    return started


async def cancelled(plans: Plans) -> Started:
    """A plan of quick calls that is paused, continued and cancelled."""
    chain = [look(f"s{n}", *([f"s{n - 1}"] if n else []), args={"seconds": 0.01}) for n in range(200)]
    started = await plans.start(chain, durable="batch")
    await started.until(lambda view: view["counts"].get("completed"), "a step completes")
    await started.signal("pause")
    await started.until(lambda view: view["status"] == "paused", "it is paused")
    await started.signal("unpause")
    await started.handle.cancel()
    await started.ended()
    return started


async def struck_out(plans: Plans) -> Started:
    """A tool that takes long three times, and is called as an activity from then on, in whatever run of the plan."""
    slow = [look(f"s{n}", *([f"s{n - 1}"] if n else []), args={"seconds": 0.3}) for n in range(3)]
    chain = [look(f"s{n}", f"s{n - 1}") for n in range(3, 12)]
    started = await plans.start([*slow, *chain], {"historyLimit": 10}, durable="batch")
    await started.ended()
    return started


QUICK: Mapping[str, Scenario] = {
    "quick-calls": quick,
    "quick-calls-cancelled": cancelled,
    "quick-calls-windows-by-result": quick,
    "quick-calls-struck-out": struck_out,
}
