"""Pause, unpause, begin and cancel on a real server."""

from __future__ import annotations

from typing import Any

import pytest
from temporalio.client import WorkflowExecutionStatus, WorkflowFailureError, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError, CancelledError

from tests.kit.driving import WAITS, Plans, Started, View, refusals, statuses, step, work
from tests.kit.host import a_nap, running
from tests.kit.waiting import until
from tests.workflows.conftest import MakeWorker

pytestmark = pytest.mark.every_mode


def _tree(nap: str) -> str:
    """A command with a child in the background, one in a session of its own, and one in the foreground."""
    return f"{nap} & (setsid sh -c 'exec {nap}' &) ; {nap}"


@pytest.mark.crosses_runs
async def test_a_paused_plan_starts_no_step_until_it_is_unpaused(plans: Plans) -> None:
    plan = await plans.start([work("a", args=WAITS), work("b", "a")])
    await plan.until_status("a", "running")
    await plan.signal("pause", {"by": "ann"})
    await plan.until_logged("paused")
    plans.go()
    view = await plan.until_status("a", "completed")
    assert view["status"] == "paused"
    assert statuses(view) == {"a": "completed", "b": "ready"}
    await plan.signal("unpause")
    view = await plan.ended()
    assert view["status"] == "completed"
    assert [entry["text"] for entry in view["log"]] == ["paused by ann", "unpaused"]


async def test_pausing_a_paused_plan_is_refused_and_said_so(plans: Plans) -> None:
    plan = await plans.start([work("gate", requiresApproval=True)])
    await plan.until_asked("gate")
    await plan.signal("unpause", {})
    await plan.signal("pause", None)
    await plan.signal("pause")
    view = await plan.until_logged("refused", "NOT_RUNNING")
    assert [text.split()[0] for text in refusals(view)] == ["REFUSED:NOT_PAUSED", "REFUSED:NOT_RUNNING"]
    await plan.approve("gate")
    await plan.signal("unpause")
    assert (await plan.ended())["status"] == "completed"


async def test_the_update_control_answers_what_became_of_it(plans: Plans) -> None:
    plan = await plans.start([work("gate", requiresApproval=True)], {"review": True})
    await plan.until(lambda view: view["status"] == "review", "review")
    for action, text, status in (
        ("begin", "review ended by ann", "running"),
        ("pause", "paused by ann", "paused"),
        ("unpause", "unpaused by ann", "running"),
        ("interrupt", "interrupted by ann", "running"),
    ):
        answer = await plan.handle.execute_update("control", {"action": action, "by": "ann"})
        assert answer == {"action": action, "text": text, "status": status}
    view = await plan.ended()
    assert view["status"] == "cancelled"
    assert [entry["text"] for entry in view["log"]] == [
        *("review ended by ann", "paused by ann", "unpaused by ann", "interrupted by ann"),
    ]


async def test_a_control_that_cannot_count_is_refused_with_its_code_and_leaves_no_trace(plans: Plans) -> None:
    plan = await plans.start([work("gate", requiresApproval=True)])
    await plan.until_asked("gate")
    before = await plan.view()
    for message, code in (
        (({"action": "begin"},), "NOT_IN_REVIEW"),
        (({"action": "unpause"},), "NOT_PAUSED"),
        (({"action": "stop"},), "BAD_MESSAGE"),
        (({"action": None},), "BAD_MESSAGE"),
        (({"by": "ann"},), "BAD_MESSAGE"),
        (({"action": "pause", "by": "x" * 201},), "BAD_MESSAGE"),
        (({"action": "pause", "byy": "ann"},), "BAD_MESSAGE"),
        (({"action": "pause"}, {"action": "pause"}), "BAD_MESSAGE"),
        (({"action": "pause", "by": "x" * 17_000},), "MESSAGE_TOO_LARGE"),
        ((), "BAD_MESSAGE"),
        (("pause",), "BAD_MESSAGE"),
    ):
        assert await _refusal(plan, *message) == code
    assert await plan.view() == before
    await plan.handle.execute_update("control", {"action": "pause"})
    assert await _refusal(plan, {"action": "pause"}) == "NOT_RUNNING"
    await plan.handle.execute_update("control", {"action": "unpause"})
    await plan.approve("gate")
    assert (await plan.ended())["status"] == "completed"


async def test_a_draft_is_begun_only_at_the_version_that_was_reviewed(plans: Plans) -> None:
    plan = await plans.start([work("a")], {"review": True})
    await plan.until(lambda view: view["status"] == "review", "review")
    edit = {"edits": [{"op": "set", "stepId": "a", "path": "description", "value": "other"}]}
    await plan.handle.execute_update("edit", edit)
    assert await _refusal(plan, {"action": "begin", "version": 1}) == "STALE_VERSION"
    await plan.signal("begin", {"version": 1})
    view = await plan.until_logged("refused", "STALE_VERSION")
    assert view["status"] == "review"
    await plan.handle.execute_update("control", {"action": "begin", "version": 2})
    assert (await plan.ended())["status"] == "completed"


async def _refusal(plan: Started, *message: Any) -> str | None:
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await plan.handle.execute_update("control", args=message)
    assert isinstance(refused.value.cause, ApplicationError)
    return refused.value.cause.type


@pytest.mark.crosses_runs
async def test_an_approval_during_a_pause_counts_afterwards(plans: Plans) -> None:
    plan = await plans.start([work("gate", requiresApproval=True)])
    await plan.until_asked("gate")
    await plan.signal("pause")
    await plan.approve("gate")
    view = await plan.until_logged("approved")
    assert step(view, "gate")["status"] == "ready"
    await plan.signal("unpause")
    assert (await plan.ended())["status"] == "completed"


@pytest.mark.crosses_runs
async def test_a_plan_in_review_starts_when_it_is_begun(plans: Plans) -> None:
    plan = await plans.start([work("a")], {"review": True})
    view = await plan.until(lambda view: view["status"] == "review", "review")
    assert statuses(view) == {"a": "pending"}
    await plan.signal("begin", {"by": "ann"})
    view = await plan.ended()
    assert view["status"] == "completed"
    assert [entry["text"] for entry in view["log"]] == ["review ended by ann"]


async def test_cancelling_ends_the_running_command_and_all_it_started(plans: Plans) -> None:
    nap = a_nap()
    command = {"id": "tree", "tool": "run_command", "args": {"command": _tree(nap)}, "requiresApproval": False}
    plan = await plans.start([work("done"), {**command, "dependsOn": ["done"]}, work("after", "tree")])
    await until(lambda: len(running(nap)) == 3, "the tree of processes is up")
    await plan.handle.cancel()
    view = await _cancelled(plan)
    assert statuses(view) == {"done": "completed", "tree": "failed", "after": "blocked"}
    assert step(view, "tree")["result"]["code"] == "CANCELLED"
    assert running(nap) == []


@pytest.mark.crosses_runs
async def test_cancelling_a_plan_that_waits_or_sleeps_ends_it(plans: Plans) -> None:
    nap = {"id": "nap", "tool": "sleep", "args": {"seconds": 600.0}}
    gate = work("gate", requiresApproval=True, approval={"timeout": 600.0})
    plan = await plans.start([nap, gate, work("after", "gate")])
    await plan.until_asked("gate")
    await plan.until_status("nap", "running")
    await plan.handle.cancel()
    view = await _cancelled(plan)
    assert statuses(view) == {"nap": "failed", "gate": "blocked", "after": "blocked"}


@pytest.mark.crosses_runs
async def test_cancelling_a_paused_plan_ends_it(plans: Plans) -> None:
    plan = await plans.start([work("gate", requiresApproval=True)])
    await plan.until_asked("gate")
    await plan.signal("pause")
    await plan.until_logged("paused")
    await plan.handle.cancel()
    assert statuses(await _cancelled(plan)) == {"gate": "blocked"}


async def test_cancelling_a_plan_in_review_ends_it(plans: Plans) -> None:
    plan = await plans.start([work("a")], {"review": True})
    await plan.until(lambda view: view["status"] == "review", "review")
    await plan.handle.cancel()
    assert statuses(await _cancelled(plan)) == {"a": "blocked"}


async def test_a_plan_cancelled_before_any_worker_saw_it_ends_cancelled(idle: Plans, make_worker: MakeWorker) -> None:
    plan = await idle.start([work("a")])
    await plan.handle.cancel()
    async with make_worker():
        assert statuses(await _cancelled(plan)) == {"a": "blocked"}
    assert idle.ledger == []


async def _cancelled(plan: Started) -> View:
    """The view after a cancellation; asserts that the plan ended as cancelled."""
    with pytest.raises(WorkflowFailureError) as raised:
        await plan.handle.result()
    assert isinstance(raised.value.cause, CancelledError)
    assert (await plan.handle.describe()).status is WorkflowExecutionStatus.CANCELED
    view = await plan.view()
    assert view["status"] == "cancelled"
    assert (await plan.handle.query("summary"))["status"] == "cancelled"
    assert not set(statuses(view).values()) & {"running", "ready", "pending"}
    return view
