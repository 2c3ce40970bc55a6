"""Plans that have their workspace to themselves: one after the other, visibly, and never stuck behind an ended one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from plansurvive.client import runs
from plansurvive.client.verbs import resume
from plansurvive.features.locks.rules import key_of
from tests.kit.driving import WAITS, Plans, Started, View, statuses, work
from tests.kit.waiting import until
from tests.workflows.test_signed_again import newest, reset, tasks_of

pytestmark = pytest.mark.uses("locks")

ALONE: dict[str, Any] = {"workspaceLock": True}


async def holding(plans: Plans, **args: Any) -> Started:
    """A plan that holds the lock and is at work until it is told to go on."""
    started = await plans.start([work("first", args={**WAITS, **args})], **ALONE)
    await started.until_status("first", "running")
    return started


async def waiting(plans: Plans, *steps: dict[str, Any], **plan: Any) -> Started:
    """A plan that waits for the lock, and knows who has it."""
    started = await plans.start(list(steps) or [work("second")], **ALONE, **plan)
    await started.until(lambda view: view.get("notices", {}).get("locks", {}).get("planId"), "it waits for another")
    return started


def lock(view: View) -> dict[str, Any]:
    found: dict[str, Any] = view["notices"]["locks"]
    return found


async def test_one_plan_works_after_the_other_and_who_has_the_workspace_is_shown(plans: Plans) -> None:
    first = await holding(plans)
    second = await waiting(plans)
    view = await second.view()
    name = first.id.removeprefix("plan-")
    assert (lock(view)["holds"], lock(view)["planId"]) == (True, name)
    assert lock(view)["text"] == f"waits for its workspace, held by {name}"
    assert statuses(view) == {"second": "ready"}
    assert name in await second.handle.query("text", {"detailed": True})
    assert not lock(await first.view())["holds"]
    keeper = plans.client.get_workflow_handle(key_of(str(plans.workspace)))
    assert await keeper.query("line") == [first.id, second.id]
    free = await plans.run([work("free")])  # the control: a plan that does not ask for it does not wait
    assert free["status"] == "completed"
    plans.go()
    assert (await second.ended())["status"] == "completed"
    names = [line[:2] for line in plans.ledger]
    assert names.index(["end", "first"]) < names.index(["start", "second"])
    await keeper.result()  # nobody is left


async def test_a_plan_that_waits_can_be_cancelled_and_runs_nothing(plans: Plans) -> None:
    first = await holding(plans)
    second = await waiting(plans, **{"finally": [work("tell")]})
    third = await waiting(plans, work("third"))
    await second.handle.cancel()
    assert (await second.ended())["status"] == "cancelled"
    plans.go()
    assert (await third.ended())["status"] == "completed"
    await first.ended()
    assert {line[1] for line in plans.ledger} == {"first", "third"}


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_plan_that_is_terminated_frees_its_workspace(plans: Plans) -> None:
    first = await holding(plans)
    second = await waiting(plans)
    await first.handle.terminate("killed")
    plans.go()
    assert (await second.ended())["status"] == "completed"


async def test_a_child_plan_works_under_the_lock_of_its_parent(plans: Plans) -> None:
    child = {"id": "child", "tool": "plan", "args": {"file": "child.yaml"}}
    (plans.workspace / "child.yaml").write_text(
        "workspaceLock: true\nsteps:\n  - {id: inner, tool: work, args: {name: inner}}\n"
    )
    view = await plans.run([child], **ALONE)
    assert view["status"] == "completed"


async def test_continue_as_new_keeps_the_lock_and_the_place_in_the_line(plans: Plans) -> None:
    steps = [work("a"), work("b", "a"), work("ask", "b", requiresApproval=True)]
    first = await plans.start(steps, {"historyLimit": 10}, **ALONE)
    await first.until_asked("ask")
    second = await waiting(plans)
    await asyncio.gather(*(second.signal("files_changed", {"paths": ["x"]}) for _ in range(3)))
    await first.approve("ask")
    await first.ended()
    assert (await second.ended())["status"] == "completed"
    assert len(await first.histories()) > 1
    assert await until(lambda: _is_free(plans), "nobody holds it")


async def _is_free(plans: Plans) -> bool:
    status = (await plans.client.get_workflow_handle(key_of(str(plans.workspace))).describe()).status
    return status is not None and status.name == "COMPLETED"


async def test_a_resumed_plan_asks_for_its_workspace_again_behind_those_that_wait(plans: Plans) -> None:
    first = await plans.start([work("first", args=WAITS), work("last", "first")], **ALONE)
    await first.until_status("first", "running")
    second = await waiting(plans, work("second", requiresApproval=True))
    await runs.interrupt(plans.client, first.id)
    plans.go()
    assert (await first.ended())["status"] == "cancelled"
    await second.until_asked("second")
    again = Started(plans.client, (await resume.resume(plans.client, first.id)).workflow_id)
    view = await again.until(lambda view: view.get("notices", {}).get("locks", {}).get("planId"), "it waits")
    assert statuses(view)["last"] == "ready"
    await second.approve("second")
    assert (await again.ended())["status"] == "completed"
    assert [line[1] for line in plans.ledger if line[0] == "start"] == ["first", "second", "last"]


@pytest.mark.on_server("resets")
async def test_a_plan_that_is_reset_does_not_wait_for_the_lock_that_it_holds(plans: Plans) -> None:
    first = await holding(plans)
    second = await waiting(plans)
    await reset(first, tasks_of(await newest(first))[0])
    await first.until_status("first", "running")
    plans.go()
    for plan in (first, second):
        assert (await plan.ended())["status"] == "completed"
