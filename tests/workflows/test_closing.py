"""Rollback and `finally` on a real server: in order, once, visible, however the plan ended."""

from __future__ import annotations

from typing import Any

import pytest
from temporalio.client import WorkflowExecutionStatus

from plansurvive.client.verbs.resume import rerun, resume
from plansurvive.plans.errors import Refused
from tests.kit.driving import WAITS, Plans, Started, View, statuses, step, work

BREAKS = {"id": "breaks", "tool": "refuse", "args": {"code": "BROKEN"}, "dependsOn": ["c"]}


def undoable(step_id: str, *needs: str, **more: Any) -> dict[str, Any]:
    """A step whose undo writes its value into the ledger."""
    return work(step_id, *needs, undo={"tool": "append", "args": {"text": "undo {{value}}"}}, **more)


def ending(*steps: dict[str, Any]) -> dict[str, Any]:
    """The field `finally` of a plan."""
    return {"finally": list(steps)}


def three_that_break() -> list[dict[str, Any]]:
    """Three undoable steps, one after the other, and one that fails."""
    return [undoable("a"), undoable("b", "a"), undoable("c", "b"), BREAKS]


def ends(plans: Plans) -> list[str]:
    """What happened, in order: steps that ended, and undos."""
    return [line[1] if line[0] == "end" else " ".join(line) for line in plans.ledger if line[0] != "start"]


async def status_of(plan: Started) -> WorkflowExecutionStatus | None:
    """How the workflow ended."""
    return (await plan.handle.describe()).status


@pytest.mark.crosses_runs
async def test_a_failing_plan_undoes_what_it_did_in_reverse_order_and_then_runs_its_finally(plans: Plans) -> None:
    last = work("tell", args={"name": "{{status}}-{{a}}"})
    view = await plans.run(three_that_break(), rollback=True, **ending(last))
    assert ends(plans) == ["a", "b", "c", "undo c", "undo b", "undo a", "partial-a"]
    assert view["status"] == "partial"
    assert [step(view, name)["undo"]["status"] for name in "abc"] == ["completed"] * 3
    assert statuses(view) == {
        "a": "completed",
        "b": "completed",
        "c": "completed",
        "breaks": "failed",
        "c.undo": "completed",
        "b.undo": "completed",
        "a.undo": "completed",
        "finally.tell": "completed",
    }
    assert view["counts"] == {"total": 4, "completed": 3, "failed": 1}


async def test_a_plan_that_completes_undoes_nothing(plans: Plans) -> None:
    view = await plans.run([undoable("a")], rollback=True, **ending(work("tell", args={"name": "{{status}}"})))
    assert ends(plans) == ["a", "completed"]
    assert view["status"] == "completed"
    assert "undo" not in step(view, "a") or "status" not in step(view, "a")["undo"]


@pytest.mark.crosses_runs
async def test_a_cancelled_plan_rolls_back_before_it_ends_as_cancelled(plans: Plans) -> None:
    plan = await plans.start([undoable("a"), work("slow", "a", args=WAITS)], rollback=True, **ending(work("tell")))
    await plan.until_status("slow", "running")
    await plan.handle.cancel()
    view = await plan.ended()
    assert ends(plans) == ["a", "undo a", "tell"]
    assert view["status"] == "cancelled"
    assert statuses(view)["slow"] == "failed"


async def test_an_undo_that_fails_is_recorded_and_the_others_still_run(plans: Plans) -> None:
    steps = three_that_break()
    steps[1]["undo"] = {"tool": "refuse", "args": {"code": "STUCK"}}
    view = await plans.run(steps, rollback=True)
    assert ends(plans) == ["a", "b", "c", "undo c", "undo a"]
    undo = step(view, "b")["undo"]
    assert (undo["status"], undo["result"]["code"]) == ("failed", "STUCK")
    assert view["status"] == "partial"


async def test_an_undo_of_several_steps_runs_them_by_their_dependencies(plans: Plans) -> None:
    first = {"id": "first", "tool": "work", "args": {"name": "one-{{value}}"}}
    second = {"id": "second", "tool": "append", "args": {"text": "two {{first}} {{value}}"}}
    steps = [work("a", undo={"steps": [second, first]}), {**BREAKS, "dependsOn": ["a"]}]
    view = await plans.run(steps, rollback=True)
    assert ends(plans) == ["a", "one-a", "two one-a a"]
    assert step(view, "a")["undo"]["status"] == "completed"


@pytest.mark.crosses_runs
async def test_an_undo_that_needs_approval_asks_and_a_second_cancellation_ends_the_wait(plans: Plans) -> None:
    signed = work("a", undo={"tool": "sign", "args": {"text": "{{value}}"}})
    plan = await plans.start([signed, work("slow", "a", args=WAITS)], rollback=True, **ending(work("tell")))
    await plan.until_status("slow", "running")
    await plan.handle.cancel()
    view = await plan.until(lambda view: view["pending"], "an undo awaits approval")
    assert [(item["stepId"], item["args"]) for item in view["pending"]] == [("a.undo", {"text": "a"})]
    await plan.signal("abandon", {"by": "ann"})
    view = await plan.ended()
    assert ends(plans) == ["a"]
    assert view["status"] == "cancelled"
    assert step(view, "a")["undo"]["status"] == "failed"
    assert await status_of(plan) is WorkflowExecutionStatus.CANCELED


async def test_an_undo_that_waives_its_approval_does_not_ask_unless_an_edit_wrote_it(plans: Plans) -> None:
    undo = {"tool": "sign", "args": {"text": "{{value}}"}, "requiresApproval": False}
    view = await plans.run([work("a", undo=undo), {**BREAKS, "dependsOn": ["a"]}], rollback=True)
    assert step(view, "a")["undo"]["status"] == "completed"
    assert ends(plans) == ["a", "signed a"]

    plan = await plans.start([work("b"), {**BREAKS, "dependsOn": ["b"]}], {"review": True}, rollback=True)
    await plan.until(lambda view: view["status"] == "review", "it is in review")
    change = {"op": "set", "stepId": "b", "path": "undo", "value": undo}
    await plan.handle.execute_update("edit", {"edits": [change]})
    await plan.signal("begin")
    view = await plan.until(lambda view: view["pending"], "the undo that an edit wrote asks")
    assert [item["stepId"] for item in view["pending"]] == ["b.undo"]
    await plan.approve("b.undo", by="ann", digest=view["pending"][0]["digest"])
    assert step(await plan.ended(), "b")["undo"]["status"] == "completed"


@pytest.mark.crosses_runs
async def test_an_undo_runs_once_it_is_approved_and_not_when_it_is_denied(plans: Plans) -> None:
    steps = [work("a", undo={"tool": "sign", "args": {"text": "{{value}}"}})]
    steps += [work("b", "a", undo={"tool": "sign", "args": {"text": "{{value}}"}}), {**BREAKS, "dependsOn": ["b"]}]
    plan = await plans.start(steps, rollback=True)
    await plan.until(lambda view: [item["stepId"] for item in view["pending"]] == ["b.undo"], "b.undo asks")
    await plan.deny("b.undo", by="ann")
    await plan.until(lambda view: [item["stepId"] for item in view["pending"]] == ["a.undo"], "a.undo asks")
    await plan.approve("a.undo", by="ann")
    view = await plan.ended()
    assert [step(view, name)["undo"]["status"] for name in "ab"] == ["completed", "skipped"]
    assert ends(plans) == ["a", "b", "signed a"]


async def test_the_approval_of_a_step_covers_the_undo_that_is_shown_with_it_and_no_other(plans: Plans) -> None:
    def signing(name: str, text: str, *needs: str) -> dict[str, Any]:
        return work(name, *needs, requiresApproval=True, undo={"tool": "sign", "args": {"text": text}})

    steps = [signing("a", "{{inputs.who}}"), signing("b", "{{value}}", "a"), {**BREAKS, "dependsOn": ["b"]}]
    inputs = {"who": {"type": "string", "default": "ann"}}
    plan = await plans.start(steps, rollback=True, inputs=inputs)
    for name, undo in (("a", {"tool": "sign", "args": {"text": "ann"}}), ("b", None)):
        view = await _asked(plan, name)
        assert view["pending"][0].get("undo") == undo
        await plan.approve(name, by="ann", digest=view["pending"][0]["digest"])
    await _asked(plan, "b.undo")  # it uses a value
    await plan.approve("b.undo", by="ann")
    view = await plan.ended()
    assert ends(plans) == ["a", "b", "signed b", "signed ann"]
    assert [step(view, name)["undo"]["status"] for name in "ab"] == ["completed"] * 2


async def test_an_approval_before_the_step_asks_covers_no_undo(plans: Plans) -> None:
    undo = {"tool": "sign", "args": {"text": "x"}}
    steps = [
        work("first", args=WAITS),
        work("a", "first", requiresApproval=True, undo=undo),
        {**BREAKS, "dependsOn": ["a"]},
    ]
    plan = await plans.start(steps, rollback=True)
    await plan.until_status("first", "running")
    await plan.approve("a", by="ann")
    plans.go()
    await _asked(plan, "a.undo")  # it was shown to nobody


async def _asked(plan: Started, name: str) -> View:
    return await plan.until(lambda view: [item["stepId"] for item in view["pending"]] == [name], f"{name} asks")


async def test_a_failing_finally_makes_a_completed_plan_partial_or_failed(plans: Plans) -> None:
    broken = {"id": "broken", "tool": "refuse", "args": {"code": "NO"}}
    missing = {"id": "missing", "tool": "append", "args": {"text": "{{never}}"}}
    never = work("never", when="`false`")
    view = await plans.run([work("a"), never], **ending(broken, missing, work("tell")))
    assert view["status"] == "partial"
    assert ends(plans) == ["a", "tell"]
    assert step(view, "finally.missing")["result"]["code"] == "BAD_REFERENCE"
    view = await plans.run([work("a")], **ending({**broken, "critical": True}))
    assert view["status"] == "failed"


@pytest.mark.crosses_runs
async def test_a_failing_finally_runs_again_when_the_plan_is_resumed(plans: Plans) -> None:
    plan = await plans.start([work("a")], **ending({"id": "look", "tool": "read_file", "args": {"path": "later.txt"}}))
    assert (await plan.ended())["status"] == "partial"
    with pytest.raises(Refused, match=r"'finally\.look' is a step of `finally`, which .*: `plan resume"):
        await rerun(plan.client, plan.id, start_at="finally.look")
    (plans.workspace / "later.txt").write_text("here")
    again = Started(plan.client, (await resume(plan.client, plan.id)).workflow_id)
    view = await again.ended()
    assert (view["status"], statuses(view)) == ("completed", {"a": "completed", "finally.look": "completed"})
    assert ends(plans) == ["a"], "only `finally` ran again"
    with pytest.raises(Refused, match="every step is done"):
        await resume(plan.client, again.id)


async def test_an_interrupted_plan_does_not_roll_back_nor_run_its_finally(plans: Plans) -> None:
    plan = await plans.start(
        [undoable("a"), work("slow", "a", args=WAITS), work("b", "slow")], rollback=True, **ending(work("tell"))
    )
    await plan.until_status("slow", "running")
    await plan.signal("interrupt", {})
    await plan.until_logged("stopped")
    plans.go()
    view = await plan.ended()
    assert view["status"] == "cancelled"
    assert ends(plans) == ["a", "slow"]


def guarded() -> dict[str, Any]:
    """A block that waits for an event, and has a `finally`."""
    waits = {"id": "go", "tool": "wait_for", "args": {"event": "go"}, "dependsOn": ["first"]}
    last = [work("clean", args={"name": "{{status}}"})]
    return {"id": "block", "steps": [work("first"), waits, work("last", "go")], **ending(*last)}


async def test_the_finally_of_a_block_knows_that_the_plan_was_cancelled(plans: Plans) -> None:
    plan = await plans.start([guarded(), {**guarded(), "id": "each", "forEach": [1, 2]}], **ending(work("tell")))
    await plan.until(lambda _: ends(plans).count("first") == 3, "every block waits")
    await plan.handle.cancel()
    assert (await plan.ended())["status"] == "cancelled"
    assert ends(plans) == [*["first"] * 3, *["cancelled"] * 3, "tell"]


async def test_an_interrupted_plan_leaves_the_finally_of_a_block_to_the_run_that_resumes_it(plans: Plans) -> None:
    plan = await plans.start([guarded()])
    await plan.until(lambda _: ends(plans) == ["first"], "the block waits")
    await plan.signal("interrupt", {})
    assert (await plan.ended())["status"] == "cancelled"
    assert ends(plans) == ["first"]
    later = Started(plans.client, (await resume(plans.client, plan.id)).workflow_id)
    await later.signal("event", {"name": "go"})
    assert (await later.ended())["status"] == "completed"
    assert ends(plans) == ["first", "last", "completed"]


async def test_a_first_cancellation_during_finally_lets_it_finish(plans: Plans) -> None:
    plan = await plans.start([work("a")], **ending(work("slow", args=WAITS), work("then", "slow")))
    await plan.until(lambda view: statuses(view).get("finally.slow") == "running", "finally runs")
    await plan.handle.cancel()
    view: View = await plan.until_logged("closing", "cancelled while")
    assert view["closing"] == {"phase": "finally", "ends": "completed", "cancelled": True, "undo": {}}
    for message in ({"action": "interrupt"}, {"action": "begin"}):
        with pytest.raises(Exception, match=r".*"):
            await plan.handle.execute_update("control", message)
    plans.go()
    assert (await plan.ended())["status"] == "completed"
    assert ends(plans) == ["a", "slow", "then"]


@pytest.mark.crosses_runs
async def test_a_plan_resumed_after_a_rollback_runs_what_was_undone_again(plans: Plans) -> None:
    plan = await plans.start([*three_that_break(), work("free")], rollback=True)
    await plan.ended()
    state = await plan.handle.query("state")
    assert state["closing"]["order"] == ["c", "b", "a"]
