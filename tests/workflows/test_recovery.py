"""A failed step and the LLM: retry, skip, insert, abort, through the same edits as a person's, bounded and visible."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kit.driving import Plans, Started, statuses, step
from tests.workflows.conftest import MakeWorker
from tests.workflows.talking import answer, make, talking, write

pytestmark = pytest.mark.uses("planning")

READ = {"id": "read", "tool": "read_file", "args": {"path": "missing.txt"}, "description": "Read the notes"}
COPY = write("copy", "read", content="$read")
MEND = {"defaults": {"onFailure": "ask_llm"}}


def says(action: str, **more: Any) -> dict[str, Any]:
    """An LLM answer with a recovery."""
    return {"json": {"action": action, "reason": f"{action} is best", **more}}


async def started(plans: Plans, *steps: dict[str, Any], **plan: Any) -> Started:
    """A plan whose failed steps the LLM may recover."""
    return await plans.start(list(steps), **{**MEND, **plan})


@pytest.mark.crosses_runs
async def test_a_retry_with_other_arguments_mends_the_step(idle: Plans, make_worker: MakeWorker) -> None:
    (idle.workspace / "notes.txt").write_text("notes")
    async with talking(make_worker, says("retry", args={"path": "notes.txt"})) as llm:
        view = await (await started(idle, READ, COPY)).ended()
    assert view["status"] == "completed"
    assert (idle.workspace / "copy.txt").read_text() == "notes"
    asked = llm.bodies[0]["messages"][-1]["content"]
    assert all(text in asked for text in ("missing.txt", "NOT_FOUND", "REMAINING PLAN", "copy"))
    assert [(each["version"], each["by"]) for each in view["changes"]] == [(2, "llm")]
    assert "retry is best" in view["changes"][0]["reason"]
    assert "retry is best" in step(view, "read")["mended"]
    assert view["tokens"]["byStep"]["read"] > 0


@pytest.mark.crosses_runs
async def test_inserted_steps_run_before_the_step_is_tried_again(idle: Plans, make_worker: MakeWorker) -> None:
    made = write("make", args={"path": "missing.txt", "content": "made"})
    async with talking(make_worker, says("insert", steps=[made])):
        plan = await started(idle, READ, COPY)
        view = await plan.ended()
        scheduled = await plan.scheduled()
    assert statuses(view) == {"make": "completed", "read": "completed", "copy": "completed"}
    assert [each["id"] for each in view["steps"]] == ["make", "read", "copy"]
    assert (idle.workspace / "copy.txt").read_text() == "made"
    assert {"read", "llm-1", "make", "read#2"} <= scheduled.keys()


@pytest.mark.crosses_runs
async def test_a_plan_of_reads_alone_is_recovered_by_a_write_of_which_it_did_not_know(
    idle: Plans, make_worker: MakeWorker
) -> None:
    made = [write(name, args={"path": f"{name}.txt", "content": "made"}) for name in ("one", "two")]
    steps = [{**READ, "id": f"read_{name}", "args": {"path": f"{name}.txt"}} for name in ("one", "two")]
    async with talking(make_worker, *(says("insert", steps=[each]) for each in made)) as llm:
        plan = await started(idle, *steps, maxParallel=1)
        view = await plan.ended()
    assert statuses(view) == dict.fromkeys(("one", "read_one", "two", "read_two"), "completed")
    assert all("write_file" in body["messages"][0]["content"] for body in llm.bodies)
    asked = [event for event in await plan.events() if event.HasField("marker_recorded_event_attributes")]
    checks = [event for event in asked if event.marker_recorded_event_attributes.marker_name == "core_local_activity"]
    assert (
        len(checks) <= 3
    )  # the check of the plan, its tools once however often it is recovered, the record of its end


async def test_two_steps_that_fail_at_once_have_the_tools_fetched_once(idle: Plans, make_worker: MakeWorker) -> None:
    steps = [{**READ, "id": f"r{number}"} for number in range(3)]
    async with talking(make_worker, {"reply": says("skip"), "times": 0}):
        plan = await started(idle, *steps)
        await plan.ended()
    markers = [event.marker_recorded_event_attributes for event in await plan.events()]
    assert sum(marker.marker_name == "core_local_activity" for marker in markers) <= 3


async def test_a_tool_that_a_recovery_adds_still_asks_a_person_whatever_the_llm_says(
    idle: Plans, make_worker: MakeWorker
) -> None:
    (idle.workspace / "precious.txt").write_text("precious")
    remove = {"id": "remove", "tool": "delete_file", "args": {"path": "precious.txt"}, "requiresApproval": False}
    async with talking(make_worker, says("insert", steps=[remove])):
        plan = await started(idle, READ)
        view = await plan.until(lambda view: view["pending"], "a person is asked")
        assert [(item["stepId"], item["tool"]) for item in view["pending"]] == [("remove", "delete_file")]
        await plan.deny("remove")
        await plan.ended()
    assert (idle.workspace / "precious.txt").exists()


async def test_a_skipped_failure_lets_those_run_that_do_not_need_its_value(
    idle: Plans, make_worker: MakeWorker
) -> None:
    async with talking(make_worker, says("skip")):
        view = await (await started(idle, READ, COPY, write("after", "read"))).ended()
    assert statuses(view) == {"read": "skipped", "copy": "blocked", "after": "completed"}
    assert "skip is best" in step(view, "read")["reason"]


async def test_an_abort_fails_the_plan(idle: Plans, make_worker: MakeWorker) -> None:
    async with talking(make_worker, says("abort")):
        view = await (await started(idle, READ, COPY)).ended()
    assert (view["status"], statuses(view)) == ("failed", {"read": "failed", "copy": "blocked"})
    assert "abort is best" in view["stopped"]


@pytest.mark.crosses_runs
async def test_a_step_is_mended_twice_at_most(idle: Plans, make_worker: MakeWorker) -> None:
    async with talking(make_worker, {"reply": says("retry"), "times": 0}) as llm:
        view = await (await started(idle, READ)).ended()
    assert (view["status"], len(llm.bodies)) == ("partial", 2)
    assert step(view, "read")["result"]["code"] == "NOT_FOUND"


@pytest.mark.crosses_runs
async def test_a_plan_is_mended_five_times_at_most(idle: Plans, make_worker: MakeWorker) -> None:
    steps = [{**READ, "id": f"r{number}"} for number in range(7)]
    async with talking(make_worker, {"reply": says("retry"), "times": 0}) as llm:
        view = await (await started(idle, *steps)).ended()
    assert (view["status"], len(llm.bodies)) == ("partial", 5)
    assert set(statuses(view).values()) == {"failed"}


BAD: dict[str, dict[str, Any]] = {
    "prose": {"text": "Just try again."},
    "an unknown action": says("explode"),
    "an unknown tool": says("insert", steps=[{**write("x"), "tool": "rm_rf"}]),
    "a doubled id": says("insert", steps=[write("copy")]),
    "a cycle": says("insert", steps=[write("x", "copy")]),
    "bad arguments": says("retry", args={"file": "notes.txt"}),
}


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.parametrize("kind", BAD)
@pytest.mark.modes("plain")
async def test_a_bad_choice_is_corrected(idle: Plans, make_worker: MakeWorker, kind: str) -> None:
    (idle.workspace / "notes.txt").write_text("notes")
    async with talking(make_worker, BAD[kind], says("retry", args={"path": "notes.txt"})) as llm:
        view = await (await started(idle, READ, COPY)).ended()
    assert (view["status"], len(llm.bodies)) == ("completed", 2)


@pytest.mark.modes("plain")
async def test_without_a_usable_choice_the_failure_stands(idle: Plans, make_worker: MakeWorker) -> None:
    async with talking(make_worker, {"reply": {"text": "hm"}, "times": 0}) as llm:
        view = await (await started(idle, READ, COPY)).ended()
    assert (view["status"], len(llm.bodies)) == ("partial", 4)
    assert step(view, "read")["result"]["code"] == "NOT_FOUND"
    async with talking(make_worker, {"status": 401, "error": "wrong key"}):
        view = await (await started(idle, READ, COPY)).ended()
    assert any("was not recovered" in entry["text"] for entry in view["log"])


@pytest.mark.crosses_runs
async def test_a_person_may_have_to_approve_the_choice(idle: Plans, make_worker: MakeWorker) -> None:
    (idle.workspace / "notes.txt").write_text("notes")
    defaults = {"onFailure": "ask_llm", "approveRecovery": True}
    choice = says("retry", args={"path": "notes.txt"})
    async with talking(make_worker, choice, choice):
        plan = await started(idle, READ, defaults=defaults)
        view = await plan.until(lambda view: view["pending"], "a person is asked")
        assert view["pending"][0]["kind"] == "recovery"
        assert view["pending"][0]["args"]["recovery"]["args"] == {"path": "notes.txt"}
        await plan.approve("read", by="ann")
        assert (await plan.ended())["status"] == "completed"
        plan = await started(idle, READ, defaults=defaults)
        await plan.until(lambda view: view["pending"], "a person is asked")
        await plan.deny("read", by="ann")
        view = await plan.ended()
    assert (view["status"], step(view, "read")["status"]) == ("partial", "failed")


async def test_what_the_llm_chose_needs_the_approval_that_its_tool_asks_for(
    idle: Plans, make_worker: MakeWorker
) -> None:
    (idle.workspace / "precious.txt").write_text("precious")
    remove = {"id": "remove", "tool": "delete_file", "args": {"path": "missing.txt"}, "requiresApproval": False}
    async with talking(make_worker, says("retry", args={"path": "precious.txt"})):
        plan = await started(idle, remove)
        view = await plan.until(lambda view: view["pending"], "a person is asked")
        assert view["pending"][0]["args"] == {"path": "precious.txt"}
        await plan.deny("remove")
        await plan.ended()
    assert (idle.workspace / "precious.txt").exists()


@pytest.mark.crosses_runs
async def test_a_spent_budget_is_put_before_a_person(idle: Plans, make_worker: MakeWorker) -> None:
    (idle.workspace / "notes.txt").write_text("notes")
    other = {**READ, "id": "other", "dependsOn": ["read"]}
    good = says("retry", args={"path": "notes.txt"})
    async with talking(make_worker, good, good) as llm:
        plan = await started(idle, READ, other, budget={"calls": 1})
        view = await plan.until(lambda view: view["pending"], "a person is asked")
        assert (view["pending"][0]["kind"], len(llm.bodies)) == ("budget", 1)
        await plan.approve("other")
        assert (await plan.ended())["status"] == "completed"


async def test_onfailure_stop_stops_the_plan(idle: Plans, make_worker: MakeWorker) -> None:
    async with make_worker():
        view = await idle.run([{**READ, "onFailure": "stop"}, write("late", "read")])
    assert view["status"] == "failed"


async def test_cancelling_while_the_llm_is_asked_leaves_the_failure(idle: Plans, make_worker: MakeWorker) -> None:
    async with talking(make_worker, {"fault": "hang"}):
        plan = await started(idle, READ)
        await plan.until(lambda view: step(view, "read").get("awaiting") == "recovery", "the LLM is asked")
        await plan.handle.cancel()
        view = await plan.ended()
    assert (view["status"], step(view, "read")["result"]["code"]) == ("cancelled", "NOT_FOUND")


@pytest.mark.crosses_runs
async def test_the_whole_story_from_a_request_to_a_mended_end(idle: Plans, make_worker: MakeWorker) -> None:
    made = write("make", args={"path": "missing.txt", "content": "x"})
    async with talking(make_worker, answer(READ, COPY), says("insert", steps=[made])):
        plan = await make(idle, "copy the notes", review=False, **MEND)
        view = await plan.ended()
    assert view["status"] == "completed"
    assert view["tokens"]["calls"] == 2
    assert (idle.workspace / "copy.txt").read_text() == "x"


@pytest.mark.modes("plain")
async def test_each_attempt_at_a_busy_llm_is_in_the_log_with_its_reason(idle: Plans, make_worker: MakeWorker) -> None:
    busy = {"status": 503, "error": "overloaded", "headers": {"retry-after-ms": "20"}}
    async with talking(make_worker, busy, busy, says("skip")):
        view = await (await started(idle, READ)).ended()
    assert statuses(view) == {"read": "skipped"}
    told = [(entry["code"], entry["text"]) for entry in view["log"] if "attempt" in entry["text"]]
    assert [code for code, _ in told] == ["LLM_UNAVAILABLE"] * 2
    assert [text.partition(" failed: ")[0] for _, text in told] == [
        f"recovery of 'read' 1 of 2: attempt {number} of 5" for number in (1, 2)
    ]
