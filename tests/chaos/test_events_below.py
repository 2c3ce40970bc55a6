"""Workers die while an event is on its way to a step of a plan below: the step receives it, and once."""

from __future__ import annotations

import pytest

from tests.chaos.conftest import KILLS, Chaos
from tests.kit.driving import WAITS, Started, step, work

pytestmark = [pytest.mark.slow, pytest.mark.uses("children", "waiting")]


async def test_each_event_reaches_a_step_below_once_whenever_the_worker_is_killed(chaos: Chaos) -> None:
    rounds = {"until": f"@ == `{KILLS}`", "limit": KILLS + 2, "keep": "all"}
    waits = {"id": "wait", "tool": "wait_for", "args": {"event": "go"}, "repeat": rounds, "dependsOn": ["held"]}
    kid = {"id": "kid", "tool": "plan", "args": {"steps": [work("held", args=WAITS), waits]}}
    await chaos.worker.up()
    plan = await chaos.plans.start([{"id": "top", "tool": "plan", "args": {"steps": [kid]}}])
    small = Started(plan.client, f"{plan.id}-top-kid")
    await small.until_status("held", "running")
    await plan.signal("event", {"name": "go", "data": 0})  # no step waits for it yet
    chaos.plans.go()
    for number in range(1, KILLS + 1):
        await plan.signal("event", {"name": "go", "data": number})
        for _ in range(chaos.chance.randrange(20)):
            await plan.handle.describe()  # the event gets some of its way
        chaos.worker.kill()
        await chaos.worker.up()
    assert (await plan.ended())["status"] == "completed"
    assert step(await small.view(), "wait")["result"]["value"] == list(range(KILLS + 1))
