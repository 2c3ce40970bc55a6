"""Questions and events on a real server, sent as anybody would with Temporal's own tools."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from temporalio.client import WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from plansurvive.client.verbs import resume
from tests.kit.driving import Plans, Started, refusals, statuses, step, work
from tests.workflows.conftest import MakeWorker

pytestmark = pytest.mark.uses("waiting")


def ask(step_id: str = "ask", *needs: str, **args: Any) -> dict[str, Any]:
    """A step that asks a question."""
    return {"id": step_id, "tool": "ask", "dependsOn": list(needs), "args": {"question": "Which?", **args}}


def wait(step_id: str = "wait", *needs: str, **args: Any) -> dict[str, Any]:
    """A step that waits for an event."""
    return {"id": step_id, "tool": "wait_for", "dependsOn": list(needs), "args": {"event": "paid", **args}}


async def refused(plan: Started, name: str, message: dict[str, Any]) -> str:
    """The code with which an update is refused."""
    with pytest.raises(WorkflowUpdateFailedError) as caught:
        await plan.handle.execute_update(name, message)
    assert isinstance(caught.value.cause, ApplicationError)
    return str(caught.value.cause.type)


@pytest.mark.crosses_runs
async def test_a_question_stays_until_an_answer_fits_and_the_value_is_used(plans: Plans) -> None:
    copy = {"id": "copy", "tool": "write_file", "args": {"path": "copy.txt", "content": "{{ask.size}} cm"}}
    size = {"type": "object", "properties": {"size": {"type": "integer", "minimum": 1}}, "required": ["size"]}
    plan = await plans.start([ask(schema=size, to="the carpenter"), copy])
    view = await plan.until_asked("ask")
    item = view["pending"][0]
    assert (item["kind"], item["stepId"], item["args"]["to"]) == ("question", "ask", "the carpenter")
    assert step(view, "ask")["status"] == "ready"
    assert step(view, "ask")["awaiting"] == "answer"
    await plan.signal("answer", {"stepId": "ask", "value": {"size": 0}})
    await plan.until_logged("refused", "INVALID_ANSWER")
    assert await refused(plan, "answer", {"stepId": "ask", "value": "big"}) == "INVALID_ANSWER"
    assert await refused(plan, "decide", {"stepId": "ask", "approved": True}) == "IS_A_QUESTION"
    assert await refused(plan, "answer", {"stepId": "copy", "value": 1}) == "NOT_A_QUESTION"
    await plan.signal("answer", {"stepId": "ask", "value": {"size": 3}, "by": "ann"})
    view = await plan.ended()
    assert view["status"] == "completed"
    assert step(view, "ask")["answer"]["by"] == "ann"
    assert (plans.workspace / "copy.txt").read_text() == "3 cm"


@pytest.mark.crosses_runs
async def test_the_first_answer_counts_even_before_there_is_a_worker_and_a_second_is_refused(
    idle: Plans, make_worker: MakeWorker
) -> None:
    plan = await idle.start([work("a"), ask("ask", "a", choices=["red", "blue"]), ask("other", "a")])
    await plan.signal("answer", {"stepId": "ask", "value": "blue", "by": "ann"})
    await plan.signal("answer", {"stepId": "ask", "value": "red", "by": "bob"})
    async with make_worker():
        await plan.until_status("ask", "completed")
        await plan.signal("answer", {"stepId": "other", "value": "text"})
        view = await plan.ended()
    assert step(view, "ask")["result"]["value"] == "blue"
    [refused] = refusals(view)
    assert refused.startswith("REFUSED:ALREADY_DECIDED answer: step 'ask' was already answered by ann on ")


@pytest.mark.crosses_runs
async def test_without_an_answer_in_time_the_default_counts_or_the_step_is_skipped_or_fails(plans: Plans) -> None:
    late = {"timeout": 0.3}
    plan = await plans.start([
        ask("default", default="red", choices=["red", "blue"], **late),
        ask("skip", onTimeout="skip", **late), ask("fail", **late), wait("event", **late),
        work("after", "skip"), work("never", "fail"),
    ])  # fmt: skip
    view = await plan.ended()
    assert statuses(view) == {
        "default": "completed", "skip": "skipped", "fail": "failed", "event": "failed",
        "after": "completed", "never": "blocked",
    }  # fmt: skip
    assert step(view, "default")["result"]["value"] == "red"
    assert step(view, "default")["answer"]["source"] == "timeout"
    assert step(view, "fail")["result"]["code"] == "ANSWER_TIMEOUT"
    assert step(view, "event")["result"]["code"] == "EVENT_TIMEOUT"


@pytest.mark.crosses_runs
async def test_an_event_is_for_every_step_that_waits_for_it_also_if_it_came_before(plans: Plans) -> None:
    order = ask("order", schema={"type": "integer"})
    plan = await plans.start([order, wait("own", "order", match="id == {{order}}"), wait("any"), wait("second", "own")])
    await plan.until_asked("any")
    await plan.signal("event", {"name": "shipped"})
    sent = await plan.handle.execute_update("event", {"name": "paid", "data": {"id": 6}})
    assert (sent["number"], sent["steps"]) == (2, ["any"])
    sent = await plan.handle.execute_update("event", {"name": "paid", "data": {"id": 7}, "by": "shop"})
    assert sent["steps"] == []
    await plan.signal("answer", {"stepId": "order", "value": 7})
    view = await plan.ended()
    assert view["status"] == "completed"
    assert [step(view, name)["result"]["value"]["id"] for name in ("own", "any", "second")] == [7, 6, 6]


async def test_what_waits_for_a_person_is_listed_and_what_waits_for_an_event_is_shown(plans: Plans) -> None:
    plan = await plans.start([ask(), wait()])
    view = await plan.until(lambda view: all("awaiting" in each for each in view["steps"]), "both wait")
    assert [each["stepId"] for each in view["pending"]] == ["ask"]
    assert (await plan.handle.query("summary"))["awaiting"] == ["ask"]
    text = await plan.handle.query("text")
    assert "awaiting event" in text
    assert "question     │ Which?" in text
    events = await plan.handle.query("events", {"since": 0})
    assert {each["stepId"]: each["awaiting"] for each in events if "awaiting" in each} == {
        "ask": "answer",
        "wait": "event",
    }
    await plan.handle.cancel()
    assert statuses(await plan.ended()) == {"ask": "blocked", "wait": "blocked"}


@pytest.mark.crosses_runs
async def test_a_pause_an_edit_and_an_interrupt_leave_the_question_as_it_is_asked_now(plans: Plans) -> None:
    plan = await plans.start([ask(choices=["a", "b"]), work("b", "ask")])
    digest = (await plan.until_asked("ask"))["pending"][0]["digest"]
    await plan.signal("pause")
    edit = {"op": "set", "stepId": "ask", "path": "args.choices", "value": ["b", "c"]}
    await plan.handle.execute_update("edit", {"edits": [edit]})
    assert await refused(plan, "answer", {"stepId": "ask", "value": "b", "digest": digest}) == "STALE_DIGEST"
    await plan.signal("unpause")
    view = await plan.until(lambda view: view["pending"], "it asks again")
    assert view["pending"][0]["args"]["choices"] == ["b", "c"]
    assert await refused(plan, "answer", {"stepId": "ask", "value": "b"}) == "DIGEST_REQUIRED"
    digest = view["pending"][0]["digest"]
    assert await refused(plan, "answer", {"stepId": "ask", "value": "a", "digest": digest}) == "INVALID_ANSWER"
    await plan.handle.execute_update("answer", {"stepId": "ask", "value": "b", "digest": digest})
    assert (await plan.ended())["status"] == "completed"


@pytest.mark.slow
async def test_ten_thousand_events_leave_the_newest_and_a_plan_that_still_answers(plans: Plans) -> None:
    plan = await plans.start([ask(), wait("wait", "ask", match="n > `9000`")])
    await plan.until_asked("ask")
    for _ in range(4):
        await asyncio.gather(*(plan.signal("event", {"name": "paid", "data": {"n": n}}) for n in range(250)))
    await plan.signal("event", {"name": "paid", "data": {"n": 9_001}})
    await plan.signal("event", {"name": "paid", "data": "x" * 20_000})
    await plan.until_logged("refused", "MESSAGE_TOO_LARGE")
    await plan.signal("answer", {"stepId": "ask", "value": "go"})
    view = await plan.ended()
    assert step(view, "wait")["result"]["value"] == {"n": 9_001}
    assert any("events are no longer kept" in entry["text"] for entry in view["log"])


@pytest.mark.crosses_runs
async def test_each_item_of_a_loop_asks_its_own_question_and_a_catch_takes_a_late_answer(plans: Plans) -> None:
    note = work("note", args={"value": "{{ask}}"})
    body = {"steps": [ask(question="How is {{item}}?", choices=["good", "bad"]), note], "output": "note"}
    caught = [{"codes": ["ANSWER_TIMEOUT"], "steps": [work("instead", args={"value": "none"})]}]
    plan = await plans.start([
        {"id": "each", "forEach": {"items": ["a.png", "b"], "key": "@"}, **body},
        {**ask("late", timeout=0.2), "catch": caught},
        {"id": "poll", "repeat": {"until": "last", "limit": 3}, "steps": [wait()], "output": "wait"},
            {"id": "all", "tool": "write_file", "args": {"path": "all.txt", "content": "{{each}} {{poll}}"}},
    ])  # fmt: skip
    view = await plan.until(lambda view: len(view["pending"]) >= 2, "both items ask")
    items = {item["stepId"]: item for item in view["pending"]}
    assert items["each[a.png].ask"]["args"]["question"] == "How is a.png?"
    await plan.signal("answer", {"stepId": "each[b].ask", "value": "bad"})
    await plan.handle.execute_update("answer", {"stepId": "each[a.png].ask", "value": "good"})
    await plan.signal("event", {"name": "paid", "data": {"last": False}})
    await plan.signal("event", {"name": "paid", "data": {"last": True}})
    view = await plan.ended()
    assert view["status"] == "completed", view["log"]
    assert (plans.workspace / "all.txt").read_text() == '["good", "bad"] {"last": true}'
    assert step(view, "late")["status"] == "completed"


@pytest.mark.slow
@pytest.mark.modes("plain")
async def test_a_resumed_plan_asks_what_was_not_answered_and_keeps_what_was(plans: Plans) -> None:
    copy = {"id": "copy", "tool": "write_file", "args": {"path": "copy.txt", "content": "{{one}} {{two}}"}}
    plan = await plans.start([ask("one"), ask("two", to="ann"), copy])
    await plan.until(lambda view: len(view["pending"]) == 2, "both are asked")
    await plan.signal("answer", {"stepId": "one", "value": "first", "by": "bob"})
    await plan.until_status("one", "completed")
    await plan.signal("interrupt")
    assert (await plan.ended())["status"] == "cancelled"
    later = Started(plans.client, (await resume.resume(plans.client, plan.id)).workflow_id)
    view = await later.until_asked("two")
    assert [(item["stepId"], item["args"]["to"]) for item in view["pending"]] == [("two", "ann")]
    assert step(view, "one")["answer"]["by"] == "bob"
    await later.signal("answer", {"stepId": "two", "value": "second", "by": "ann"})
    assert (await later.ended())["status"] == "completed"
    assert (plans.workspace / "copy.txt").read_text() == "first second"
