"""Plans whose deadline passes: what was running is cancelled, the plan is closed as it says, and its end says why."""

from __future__ import annotations

from typing import Any

import pytest
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ApplicationError

from tests.kit.driving import WAITS, Plans, Started, View, statuses, step, work

pytestmark = pytest.mark.uses("deadline")

SOON = 4.0
UNDO = {"tool": "append", "args": {"text": "undone"}}
LAST: dict[str, Any] = {"finally": [work("tell", args={"name": "{{status}}"})]}


async def failure(started: Started) -> ApplicationError:
    """How the workflow failed."""
    with pytest.raises(WorkflowFailureError) as caught:
        await started.handle.result()
    assert isinstance(caught.value.cause, ApplicationError)
    return caught.value.cause


def expired(view: View) -> list[str]:
    return [entry["code"] for entry in view["log"] if entry["kind"] == "expired"]


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_plan_that_takes_too_long_is_rolled_back_and_fails_with_the_reason(plans: Plans) -> None:
    steps = [work("a", undo=UNDO), work("slow", "a", args=WAITS), work("ask", "a", requiresApproval=True)]
    started = await plans.start(steps, rollback=True, timeout=SOON, **LAST)
    begun = await started.until(lambda view: view.get("deadline"), "its deadline is shown")
    assert begun["timeout"] == SOON
    assert (await failure(started)).type == "PLAN_TIMEOUT"
    view = await started.view()
    assert (view["status"], expired(view)) == ("failed", ["PLAN_TIMEOUT"])
    assert "deadline" in view["stopped"]
    assert {"a": "completed", "slow": "failed", "ask": "blocked"}.items() <= statuses(view).items()
    assert step(view, "slow")["result"]["code"] == "CANCELLED"
    assert step(view, "a")["undo"]["status"] == "completed"
    assert ["end", "failed", "1"] in plans.ledger
    assert "deadline" not in view


@pytest.mark.slow
@pytest.mark.in_turn
async def test_waiting_pausing_and_continue_as_new_do_not_stop_the_clock(plans: Plans) -> None:
    steps = [work("a"), work("b", "a"), work("ask", "b", requiresApproval=True)]
    started = await plans.start(steps, {"historyLimit": 10, "timeout": SOON}, timeout=3_600.0, **LAST)
    await started.until_asked("ask")
    await started.signal("pause", {})
    assert (await failure(started)).type == "PLAN_TIMEOUT"
    assert ["end", "failed", "1"] in plans.ledger
    assert len(await started.histories()) > 1


async def test_a_plan_in_review_has_all_the_time_and_one_that_ends_in_time_is_completed(plans: Plans) -> None:
    started = await plans.start([work("a")], {"review": True}, timeout=600.0)
    view = await started.until(lambda view: view["status"] == "review", "it is in review")
    assert "deadline" not in view
    await started.signal("begin", {})
    assert (await started.ended())["status"] == "completed"


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_child_plan_ends_with_its_parent(plans: Plans) -> None:
    inner = {"steps": [work("inner", args=WAITS)]}
    started = await plans.start([{"id": "child", "tool": "plan", "args": inner}], timeout=SOON)
    await started.until_status("child", "running")
    assert (await failure(started)).type == "PLAN_TIMEOUT"
    child = Started(plans.client, f"{started.id}-child")
    assert (await child.ended())["status"] in ("cancelled", "failed")


@pytest.mark.parametrize("of_start", [False, True])
async def test_an_edit_gives_a_plan_more_time(plans: Plans, of_start: bool) -> None:
    given: dict[str, Any] = {"options": {"timeout": 120.0}} if of_start else {"timeout": 120.0}
    started = await plans.start([work("ask", requiresApproval=True)], **given)
    first = (await started.until(lambda view: view.get("deadline"), "it has begun"))["deadline"]
    assert "Deadline:" in await started.handle.query("text", {"detailed": True})
    more: dict[str, Any] = {"edits": [{"op": "set", "path": "timeout", "value": 600.0}]}
    await started.handle.execute_update("edit", more)
    assert (await started.view())["deadline"] > first
    await started.deny("ask")
    await started.ended()
