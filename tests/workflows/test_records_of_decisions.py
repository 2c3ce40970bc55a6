"""What a plan records and shows of decisions, on a real server: as asked, as decided, and what came of it."""

from __future__ import annotations

from typing import Any

import pytest
from temporalio.client import WorkflowUpdateFailedError

from plansurvive.client.feature import views_of_features
from plansurvive.plans.activity_io import PREVIEW_CHARACTERS
from plansurvive.plans.views.models.card import Card
from plansurvive.plans.views.steps.call_text import call_rows
from tests.kit.driving import Plans, Started, refusals, statuses, step, work
from tests.workflows.agents import serving
from tests.workflows.conftest import MakeWorker
from tests.workflows.talking import talking, write


def command(name: str, text: str, *needs: str, **more: Any) -> dict[str, Any]:
    """A step that runs a command, which a person must approve."""
    return {"id": name, "tool": "run_command", "args": {"command": text}, "dependsOn": list(needs), **more}


async def told(plan: Started, name: str) -> list[dict[str, Any]]:
    """All events about a step, as a watcher who comes late gets them."""
    found: list[dict[str, Any]] = await plan.handle.query("events", {"since": 0})
    return [event for event in found if event["stepId"] == name]


@pytest.mark.crosses_runs
async def test_a_late_watcher_sees_what_was_asked_and_then_what_was_decided(plans: Plans) -> None:
    plan = await plans.start([command("say", "echo hi")])
    await plan.until_asked("say")
    await plan.approve("say", by="ann", comment="better", args={"command": "echo edited"})
    await plan.ended()
    whole: list[dict[str, Any]] = await plan.handle.query("events", {"since": 0})
    asked = next(event for event in whole if event.get("awaiting"))
    assert (asked["status"], asked["awaiting"]) == ("ready", "approval")
    assert asked["asked"]["args"] == {"command": "echo hi"}
    logs = [(event["seq"], event["logs"][0]) for event in whole if "logs" in event]
    changed, decided = logs[0], logs[1]
    assert asked["seq"] < changed[0] < decided[0]
    assert changed[1]["text"] == (
        "version 2 by ann: the approver of 'say' changed its arguments:"
        ' ~ say.args.command: "echo hi" -> "echo edited"'
    )
    assert decided[1]["text"] == "step 'say' approved by ann with changed arguments: better"
    assert whole[-1]["result"]["value"]["stdout"] == "edited\n"


@pytest.mark.crosses_runs
async def test_a_waiting_step_is_told_once_as_awaiting_approval(plans: Plans) -> None:
    plan = await plans.start([work("a"), work("gate", "a", requiresApproval=True)])
    await plan.until_asked("gate")
    events = [(event["status"], event.get("awaiting")) for event in await told(plan, "gate")]
    assert events == [("blocked", None), ("ready", "approval")]
    await plan.approve("gate")
    await plan.ended()
    events = [(event["status"], event.get("awaiting")) for event in await told(plan, "gate") if "logs" not in event]
    assert events == [("blocked", None), ("ready", "approval"), ("running", None), ("completed", None)]


async def test_an_approvers_change_is_a_version_of_the_plan_with_its_operation_and_what_was_before(
    plans: Plans,
) -> None:
    plan = await plans.start([command("say", "echo hi"), command("other", "echo other")])
    view = await plan.until(lambda view: len(view["pending"]) == 2, "both ask")
    seen = view["version"]
    await plan.approve("say", by="ann", comment="better", args={"command": "echo edited", "timeout": 5.0})
    view = await plan.until(lambda view: view["version"] == 2, "the version has risen")
    [change] = view["changes"]
    assert (change["by"], change["reason"], change["version"]) == ("ann", "better", 2)
    assert change["ops"] == ["set say args.command", "set say args.timeout"]
    assert '~ say.args.command: "echo hi" -> "echo edited"' in change["diff"]
    # What another approver changed in their step takes nothing back from a decision about this one ...
    await plan.handle.execute_update("decide", {"stepId": "other", "approved": True, "version": seen})
    assert (await plan.ended())["status"] == "completed"


async def test_a_decision_about_a_version_is_refused_once_an_edit_came_after_it(plans: Plans) -> None:
    plan = await plans.start([command("say", "echo hi"), command("other", "echo other"), work("last", "say", "other")])
    await plan.until(lambda view: len(view["pending"]) == 2, "both ask")
    await plan.approve("say", args={"command": "echo edited"})
    await plan.until(lambda view: view["version"] == 2, "the version has risen")
    edit = {"edits": [{"op": "set", "stepId": "last", "path": "description", "value": "The last"}], "expectVersion": 1}
    with pytest.raises(WorkflowUpdateFailedError):  # an edit is about the whole plan: its author reads it again
        await plan.handle.execute_update("edit", edit)
    await plan.handle.execute_update("edit", edit | {"expectVersion": 2})
    await plan.approve("other", version=1)
    view = await plan.until_logged("refused", "STALE_VERSION")
    assert len(refusals(view)) == 1
    await plan.approve("other", version=3)
    assert (await plan.ended())["status"] == "completed"


@pytest.mark.crosses_runs
async def test_a_plan_whose_last_step_was_denied_is_partial_and_does_not_count_it_as_done(plans: Plans) -> None:
    plan = await plans.start([work("a"), work("b"), work("last", "a", requiresApproval=True)])
    await plan.until_asked("last")
    await plan.deny("last", by="ann", comment="not now")
    view = await plan.ended()
    assert (view["status"], view["counts"]) == ("partial", {"total": 3, "completed": 2, "denied": 1})
    summary = await plan.handle.query("summary")
    reason = "User denied approval"
    assert summary["denied"] == [{"stepId": "last", "reason": reason, "by": "ann", "comment": "not now"}]
    assert (summary["skipped"], summary["status"]) == ([], "partial")
    assert "Progress: 2/3 (66.7%)" in await plan.handle.query("text")
    assert step(view, "last")["decision"]["by"] == "ann"


async def test_a_step_without_a_decision_in_time_makes_the_plan_partial(plans: Plans) -> None:
    rule = {"timeout": 0.2, "onTimeout": "deny"}
    view = await plans.run([work("a"), work("last", "a", requiresApproval=True, approval=rule)])
    assert (view["status"], statuses(view)) == ("partial", {"a": "completed", "last": "skipped"})
    assert view["counts"] == {"total": 2, "completed": 1, "unanswered": 1}
    decision = step(view, "last")["decision"]
    assert (decision["source"], decision["comment"]) == ("timeout", "no decision within 0.2 s")


async def test_a_plan_whose_steps_a_reviewer_or_a_condition_skipped_is_completed(plans: Plans) -> None:
    plan = await plans.start([work("a"), work("no", "a", when="`false`"), work("b")], {"review": True})
    await plan.until(lambda view: view["status"] == "review", "review")
    await plan.handle.execute_update("edit", {"edits": [{"op": "skip", "stepId": "b"}]})
    await plan.signal("begin")
    view = await plan.ended()
    assert (view["status"], view["counts"]) == ("completed", {"total": 3, "completed": 1, "skipped": 2})
    assert "Progress: 3/3" in await plan.handle.query("text")


async def test_an_agent_that_answers_after_a_denied_call_is_completed_and_so_is_its_plan(
    idle: Plans, make_worker: MakeWorker
) -> None:
    call = {"tool": "run_command", "args": {"command": "echo hi"}}
    answers: list[dict[str, Any]] = [{"tool_calls": [call]}, {"tool_calls": [], "answer": "done"}]
    args = {"objective": "Say hi", "tools": ["run_command"]}
    async with serving(idle, make_worker)([{"reply": {"json": each}} for each in answers]):
        plan = await idle.start([{"id": "ag", "tool": "agent", "args": args}])
        agent = Started(idle.client, f"agent-{plan.id.removeprefix('plan-')}-ag")
        await agent.until(lambda view: view["pending"], "the agent asks")
        await agent.deny("call_1", by="ann", comment="no commands")
        view = await plan.ended()
        own, shown = await agent.view(), await agent.handle.query("text", {"detailed": True})
    assert (view["status"], step(view, "ag")["status"]) == ("completed", "completed")
    assert (own["status"], own["counts"]) == ("completed", {"total": 1, "denied": 1})
    assert "Calls: 0/1 done" in shown
    assert "Status: completed: 1 denied" in shown
    assert "Denied: by ann, " in shown


async def test_a_failed_agent_is_not_shown_as_all_done(idle: Plans, make_worker: MakeWorker) -> None:
    call = {"tool": "write_file", "args": {"path": "a.txt", "content": "a"}}
    limits = {"iterations": 1}
    async with serving(idle, make_worker)([{"reply": {"json": {"tool_calls": [call]}}}]) as agents:
        agent = await agents.start("Write it", limits=limits)
        await agent.ended()
        shown = await agent.handle.query("text", {"detailed": True})
    assert "100" not in shown
    assert "Calls: 1/1 done" in shown
    assert "Status: partial: 1 completed" in shown
    assert "Stopped: the limit of 1 LLM requests is used up" in shown


def rows(view: dict[str, Any]) -> str:
    return "\n".join(call_rows(Card.model_validate(view["pending"][0], context=views_of_features())))


async def test_a_pending_recovery_is_put_before_a_person_in_words_and_whole(
    idle: Plans, make_worker: MakeWorker
) -> None:
    read = {"id": "read", "tool": "read_file", "args": {"path": "missing.txt"}, "description": "Read the notes"}
    long = "-made" * 2_000
    inserted = write("make", args={"path": "missing.txt", "content": long})
    choice = {"json": {"action": "insert", "steps": [inserted], "reason": "it has to be there first"}}
    async with talking(make_worker, choice):
        defaults = {"onFailure": "ask_llm", "approveRecovery": True}
        plan = await idle.start([read, write("uses", "read")], defaults=defaults)
        view = await plan.until(lambda view: view["pending"], "a person is asked")
        shown, text = rows(view), await plan.handle.query("text")
        events = await told(plan, "read")
        await plan.deny("read", by="ann")
        view = await plan.ended()
    for part in (
        "recovery     │ of step 'read': insert 1 step, then call it again",
        "reason       │ it has to be there first",
        "failure      │ ",
        "1. step      │ make",
        "1. tool      │ write_file",
        "1. path      │ missing.txt",
    ):
        assert part in shown
        assert part in text
    assert "missing.txt" in next(row for row in shown.splitlines() if row.startswith("failure"))
    assert long in shown, "nothing of it is cut"
    assert "{" not in shown, "no raw JSON"
    awaited = [event["awaiting"] for event in events if "awaiting" in event]
    assert awaited == ["recovery", "approval"], "first of the LLM, then of a person"
    assert events[-1]["asked"]["kind"] == "recovery"
    assert (view["status"], step(view, "read")["status"]) == ("partial", "failed")


async def test_a_spent_budget_is_put_before_a_person_in_words_and_its_denial_makes_the_plan_partial(
    idle: Plans, make_worker: MakeWorker
) -> None:
    read = {"id": "read", "tool": "read_file", "args": {"path": "missing.txt"}}
    async with talking(make_worker, {"json": {"action": "retry", "reason": "again"}}):
        plan = await idle.start([read], defaults={"onFailure": "ask_llm"}, budget={"calls": 1})
        view = await plan.until(lambda view: view["pending"], "a person is asked")
        shown = rows(view)
        await plan.deny("read", by="ann")
        assert (await plan.ended())["status"] == "partial"
    assert "budget       │" in shown
    assert "if approved" in shown
    assert "if denied    │ the LLM is not asked: step 'read' fails" in shown
    assert "{" not in shown


async def test_every_view_has_the_task_the_creation_and_the_version_of_the_plan(plans: Plans) -> None:
    plan = await plans.start([work("a", requiresApproval=True)])
    view = await plan.until_asked("a")
    name = plan.id.removeprefix("plan-")
    brief = await plan.handle.query("plan", {"brief": True})
    so_far = await plan.handle.query("summary")
    for found in (view, brief, so_far):
        assert (found["taskId"], found["version"]) == (name, 1)
        assert found["createdAt"] == view["createdAt"] <= view["startedAt"]
    await plan.approve("a", args={"name": "b", "seconds": 0.0})
    ended = await plan.ended()
    result = await plan.handle.result()
    assert (ended["createdAt"], ended["version"], result["version"]) == (view["createdAt"], 2, 2)
    assert (result["taskId"], result["createdAt"]) == (name, view["createdAt"])
    given: dict[str, Any] = {"taskId": "task-7", "createdAt": "2025-12-24T18:00:00Z"}
    view = await plans.run([work("c")], **given)
    assert {name: view[name] for name in given} == given


async def test_a_value_in_an_event_is_whole_when_it_is_small_and_marked_when_it_is_cut(plans: Plans) -> None:
    small = write("small")
    long = command("long", "yes 0123456789 | head -n 300", requiresApproval=False)
    plan = await plans.start([small, long])
    view = await plan.ended()
    results = {name: (await told(plan, name))[-1]["result"] for name in ("small", "long")}
    assert results["small"]["value"] == step(view, "small")["result"]["value"]
    assert "cut" not in results["small"]
    assert (results["long"]["cut"], results["long"]["length"] > 3_000) == (True, True)
    assert len(results["long"]["value"]) < PREVIEW_CHARACTERS + 20
    assert len(step(view, "long")["result"]["value"]["stdout"]) == 3_300


async def test_a_skip_that_blocks_a_step_for_good_is_warned_about(plans: Plans) -> None:
    plan = await plans.start([write("a"), write("b", content="{{a}}"), write("c", "a")], {"review": True})
    await plan.until(lambda view: view["status"] == "review", "review")
    answer = await plan.handle.execute_update("edit", {"edits": [{"op": "skip", "stepId": "a"}]})
    assert answer["warnings"] == ["'b' uses the value of 'a', which is skipped: permanently blocked unless changed"]
    answer = await plan.handle.execute_update("edit", {"edits": [{"op": "skip", "stepId": "b"}]})
    assert "warnings" not in answer
    await plan.signal("begin")
    assert (await plan.ended())["status"] == "completed"
