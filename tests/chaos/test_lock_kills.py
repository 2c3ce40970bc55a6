"""A worker killed while a plan has its workspace to itself: the lock is neither lost nor left behind."""

from __future__ import annotations

from typing import Any

import pytest

from plansurvive.features.locks.rules import key_of
from tests.chaos.conftest import Chaos
from tests.kit.driving import WAITS, work
from tests.kit.waiting import until

ALONE: dict[str, Any] = {"workspaceLock": True}


@pytest.mark.slow
async def test_a_lock_outlives_the_worker_of_its_plan_and_goes_to_the_next_when_that_ends(chaos: Chaos) -> None:
    plans = chaos.plans
    await chaos.worker.up()
    first = await plans.start([work("first", args=WAITS)], **ALONE)
    await until(lambda: ["start", "first", "1"] in plans.ledger, "the step runs")
    second = await plans.start([work("second")], **ALONE)
    await second.until(lambda view: view.get("notices", {}).get("locks", {}).get("planId"), "it waits")
    keeper = plans.client.get_workflow_handle(key_of(str(plans.workspace)))

    chaos.worker.kill()
    await chaos.worker.up()
    assert await keeper.query("line") == [first.id, second.id]
    await until(lambda: ["start", "first", "2"] in plans.ledger, "the step runs again")
    assert not [line for line in plans.ledger if line[1] == "second"]  # nobody came in between
    assert not (await first.view())["notices"]["locks"]["holds"]

    plans.go()
    assert (await first.ended())["status"] == "completed"
    assert (await second.ended())["status"] == "completed"
    order = [line[:2] for line in plans.ledger]
    assert order.index(["end", "first"]) < order.index(["start", "second"])
    await keeper.result()  # nobody is left: the lock is not left behind
