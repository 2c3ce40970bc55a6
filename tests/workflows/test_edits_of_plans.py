"""Edits of a plan in review and while it runs: all or nothing, versioned, logged; approvals that bind what runs."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from temporalio.client import WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from tests.kit.driving import Plans, Started, View, step, work
from tests.nightly import only_nightly

pytestmark = pytest.mark.uses("editing")


async def edit(plan: Started, *edits: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Send the update `edit`; returns its result."""
    answer: dict[str, Any] = await plan.handle.execute_update("edit", {"edits": list(edits), **more})
    return answer


async def refusal(plan: Started, *edits: dict[str, Any], **more: Any) -> ApplicationError:
    """Send edits that must be refused; returns the error."""
    with pytest.raises(WorkflowUpdateFailedError) as caught:
        await edit(plan, *edits, **more)
    assert isinstance(caught.value.cause, ApplicationError)
    return caught.value.cause


def put(step_id: str | None, path: str, value: Any) -> dict[str, Any]:
    """A `set` edit."""
    return {"op": "set", "path": path, "value": value, **({"stepId": step_id} if step_id else {})}


async def in_review(plans: Plans, *steps: dict[str, Any], **plan: Any) -> Started:
    """A plan in review."""
    started = await plans.start(list(steps), {"review": True}, **plan)
    await started.until(lambda view: view["status"] == "review", "review")
    return started


@pytest.mark.crosses_runs
async def test_every_kind_of_edit_in_review_makes_the_plan_that_runs(plans: Plans) -> None:
    plan = await in_review(plans, work("a"), work("b", "a"), work("c"), work("d", "b"))
    answer = await edit(
        plan,
        put("b", "args.value", 7),
        put(None, "title", "Better"),
        {"op": "add", "step": work("e", "d"), "after": "d"},
        {"op": "remove", "stepId": "c"},
        {"op": "skip", "stepId": "a", "reason": "not today"},
        by="ann",
        expectVersion=1,
    )
    assert answer["version"] == 2
    assert "~ b.args.value: none -> 7" in answer["diff"]
    view = await plan.view()
    assert (view["title"], [each["id"] for each in view["steps"]]) == ("Better", ["a", "b", "d", "e"])
    await plan.signal("begin")
    view = await plan.ended()
    assert view["status"] == "completed"
    assert {each["id"]: each["status"] for each in view["steps"]} == {
        "a": "skipped", "b": "completed", "d": "completed", "e": "completed"
    }  # fmt: skip
    assert step(view, "a")["reason"] == "not today"
    assert step(view, "b")["result"]["value"] == 7
    assert [(each["version"], each["by"]) for each in view["changes"]] == [(2, "ann")]


@pytest.mark.crosses_runs
async def test_a_skip_is_taken_back_before_the_step_begins(plans: Plans) -> None:
    plan = await in_review(plans, work("a"), work("b", "a", args={"value": "$a"}))
    await edit(plan, {"op": "skip", "stepId": "a"})
    await edit(plan, {"op": "unskip", "stepId": "a"})
    await plan.signal("begin")
    view = await plan.ended()
    assert view["status"] == "completed"


async def test_what_uses_the_value_of_a_skipped_step_is_blocked(plans: Plans) -> None:
    plan = await in_review(plans, work("a"), work("b", "a", args={"value": "$a"}), work("c", "a"))
    await edit(plan, {"op": "skip", "stepId": "a"})
    await plan.signal("begin")
    view = await plan.ended()
    assert (step(view, "b")["status"], step(view, "c")["status"]) == ("blocked", "completed")


@pytest.mark.parametrize(
    ("edits", "code"),
    [
        ([put("b", "args.value", 1), put("b", "dependsOn", ["nowhere"])], "INVALID_PLAN"),
        ([put("a", "dependsOn", ["b"])], "INVALID_PLAN"),
        ([put("a", "tool", "no_such_tool")], "INVALID_PLAN"),
        ([put("a", "args.nonsense", 1)], "INVALID_PLAN"),
        ([put("a", "id", "x")], "UNKNOWN_FIELD"),
        ([put(None, "workspace", "/")], "UNKNOWN_FIELD"),
        ([put("nowhere", "args", {})], "UNKNOWN_STEP"),
        ([{"op": "remove", "stepId": "a"}], "INVALID_PLAN"),
        ([{"op": "remove", "stepId": "a"}, {"op": "remove", "stepId": "b"}], "PLAN_EMPTY"),
        ([{"op": "move", "stepId": "b"}], "BAD_MOVE"),
        ([{"op": "unskip", "stepId": "a"}], "NOT_SKIPPED"),
        ([{"op": "add", "step": work("a")}], "PLAN_DUPLICATE_ID"),
        ([{"op": "explode"}], "BAD_MESSAGE"),
        ([], "BAD_MESSAGE"),
    ],
)
@pytest.mark.modes("plain")
async def test_an_edit_that_cannot_be_applied_changes_nothing(
    plans: Plans, edits: list[dict[str, Any]], code: str
) -> None:
    plan = await in_review(plans, work("a"), work("b", "a"))
    before, events = await plan.view(), len(await plan.events())
    assert (await refusal(plan, *edits)).type == code
    assert await plan.view() == before
    # Nothing but the task that refused may be in history: no update was accepted.
    added = [event.event_type for event in (await plan.events())[events:]]
    assert not [kind for kind in added if kind not in (5, 6, 7)], added
    await plan.signal("begin")
    assert (await plan.ended())["status"] == "completed"


@pytest.mark.crosses_runs
async def test_of_two_reviewers_one_is_refused_and_shown_the_newer_version(plans: Plans) -> None:
    plan = await in_review(plans, work("a"), work("b"))
    both = await asyncio.gather(
        edit(plan, put("a", "args.value", "ann's"), expectVersion=1, by="ann"),
        edit(plan, put("b", "args.value", "bob's"), expectVersion=1, by="bob"),
        return_exceptions=True,
    )
    refused = next(each for each in both if isinstance(each, WorkflowUpdateFailedError))
    assert isinstance(refused.cause, ApplicationError)
    assert refused.cause.type == "STALE_VERSION"
    assert "version 2" in refused.cause.message
    assert "args.value" in refused.cause.message
    assert refused.cause.details[0]["version"] == 2
    taken = next(each for each in both if isinstance(each, dict))
    late = ("b", "bob's") if "a.args" in taken["diff"][0] else ("a", "ann's")
    await edit(plan, put(late[0], "args.value", late[1]), expectVersion=2)
    await plan.signal("begin")
    view = await plan.ended()
    assert [step(view, name)["result"]["value"] for name in ("a", "b")] == ["ann's", "bob's"]


@pytest.mark.crosses_runs
async def test_a_running_plan_is_edited_where_nothing_has_begun(plans: Plans) -> None:
    plan = await plans.start([work("a"), work("gate", "a", requiresApproval=True), work("b", "gate")])
    await plan.until_asked("gate")
    assert (await refusal(plan, put("a", "args.value", 1))).type == "TOO_LATE"
    await edit(
        plan,
        {"op": "add", "step": {"id": "note", "tool": "write_file", "args": {"path": "n.txt", "content": "n"}}},
        put("b", "dependsOn", ["gate", "note"]),
        put("b", "args.value", "new"),
    )
    await plan.until_status("note", "completed")
    await plan.approve("gate")
    view = await plan.ended()
    assert view["status"] == "completed"
    assert step(view, "b")["result"]["value"] == "new"


@pytest.mark.crosses_runs
async def test_a_step_that_waits_for_approval_asks_again_when_its_arguments_are_edited(plans: Plans) -> None:
    plan = await plans.start([work("first", requiresApproval=True), work("gate", "first", requiresApproval=True)])
    await plan.until_asked("first")
    await plan.approve("gate", by="ann")
    await plan.until_logged("approved")
    await edit(plan, put("gate", "args.value", "other"))
    await plan.until_logged("void")
    await plan.approve("first")
    view = await plan.until_asked("gate")
    assert view["pending"][0]["args"]["value"] == "other"
    await edit(plan, put("gate", "args.value", "third"))
    view = await plan.until(
        lambda view: view["pending"] and view["pending"][0]["args"]["value"] == "third", "asked about the third"
    )
    await plan.signal("approve", {"stepId": "gate", "version": 1})
    await plan.until_logged("refused", "STALE_VERSION")
    await plan.approve("gate", version=3)
    view = await plan.ended()
    assert step(view, "gate")["result"]["value"] == "third"


@pytest.mark.crosses_runs
async def test_edits_survive_continuing_as_new(plans: Plans) -> None:
    chain = [work("s0"), *(work(f"s{n}", f"s{n - 1}") for n in range(1, 8))]
    plan = await in_review(plans, *chain)
    await edit(plan, put("s7", "args.value", "edited"), {"op": "skip", "stepId": "s3"})
    await plan.signal("begin")
    view: View = await plan.ended()
    assert step(view, "s7")["result"]["value"] == "edited"
    assert (step(view, "s3")["status"], view["version"]) == ("skipped", 2)


@pytest.mark.modes("plain")
@pytest.mark.parametrize("count", [40, only_nightly(200)])
async def test_whatever_the_order_of_edits_and_approvals_what_runs_is_what_was_approved(
    plans: Plans, count: int
) -> None:
    """Steps that are each edited and approved in a different order (FAULTS T12)."""
    chance = random.Random(12)
    names = [f"g{number}" for number in range(count)]
    plan = await plans.start([work(name, requiresApproval=True, args={"value": 0}) for name in names])
    await plan.until(lambda view: len(view["pending"]) == len(names), "all ask")
    await plan.signal("pause")
    approved: dict[str, int | None] = {}
    for number in range(1, 4):
        for name in chance.sample(names, len(names)):
            if chance.random() < 0.5:
                approved[name] = await _approve(plan, name, approved)
        edited = chance.sample(names, count * 7 // 20)
        await edit(plan, *(op for name in edited for op in _other(name, number, by_another=chance.random() < 0.3)))
        approved |= dict.fromkeys(edited)
    await plan.signal("unpause")
    values = {each["id"]: each["args"]["value"] for each in (await plan.view())["steps"]}
    open_ones = [name for name in names if approved.get(name) is None]
    view = await plan.until(lambda view: len(view["pending"]) == len(open_ones), "those without an approval ask again")
    assert {each["stepId"] for each in view["pending"]} == set(open_ones)
    for name in open_ones:
        await plan.approve(name, digest=(await plan.handle.query("call", {"stepId": name}))["digest"])
        approved[name] = values[name]
    view = await plan.ended()
    assert {name: step(view, name)["result"]["value"] for name in names} == approved


def _other(name: str, value: int, *, by_another: bool) -> list[dict[str, Any]]:
    """Edits that change a step's value; `by_another`: by replacing the step."""
    if not by_another:
        return [put(name, "args.value", value)]
    step = work(name, requiresApproval=True, args={"value": value})
    return [{"op": "remove", "stepId": name}, {"op": "add", "step": step}]


async def _approve(plan: Started, name: str, approved: dict[str, int | None]) -> int | None:
    """Approve a step's call as it is now unless it is approved already; returns the approved value."""
    if approved.get(name) is not None:
        return approved[name]
    call = await plan.handle.query("call", {"stepId": name})
    message = {"stepId": name, "approved": True, "digest": call["digest"]}
    decision = await plan.handle.execute_update("decide", message)
    assert decision["digest"] == call["digest"]
    value: int = call["args"]["value"]
    return value


def asked(view: View) -> set[str]:
    """The steps that await a person."""
    return {each["stepId"] for each in view["pending"]}


@pytest.mark.crosses_runs
async def test_a_loop_that_runs_is_edited_for_all_items_and_for_one(plans: Plans) -> None:
    last = work("b", "a") | {"requiresApproval": True}
    loop = {"id": "each", "forEach": {"items": ["x", "y"], "key": "@"}, "steps": [work("a"), last]}
    plan = await plans.start([loop])
    await plan.until(lambda view: {"each[x].b", "each[y].b"} == asked(view), "both items await approval")
    await edit(plan, put("each.b", "args.value", 7))
    added = {"op": "add", "step": work("c", "b"), "after": "each[y].b"}
    answer = await edit(plan, put("each[y].b", "args.value", 8), added)
    assert answer["version"] == 3
    assert (await refusal(plan, put("each[x].a", "args.value", 1))).type == "TOO_LATE"
    await plan.until(lambda view: {"each[x].b", "each[y].b"} == asked(view), "both items await approval again")
    for key in ("x", "y"):
        await plan.approve(f"each[{key}].b", version=3)
    view = await plan.ended()
    assert view["status"] == "completed"
    scheduled = await plan.scheduled()
    assert {"each[x].b", "each[y].b", "each[y].c"} <= scheduled.keys()
    assert "each[x].c" not in scheduled
