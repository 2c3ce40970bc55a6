"""Interrupt and resume: finished steps do not run again, nothing is lost, and the runs are linked."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from temporalio.service import RPCError

from plansurvive.client import runs
from plansurvive.client.ids import plan_id
from plansurvive.client.verbs import resume
from plansurvive.client.verbs.resume import Links
from plansurvive.plans.editing.next_run import Replacement
from plansurvive.plans.errors import Refused
from plansurvive.plans.views.next_actions import next_actions
from tests.kit.driving import WAITS, Plans, Started, View, statuses, step, work
from tests.kit.waiting import until
from tests.nightly import sampled

DIAMONDS: list[dict[str, Any]] = [
    work("a"),
    *(work(f"b{n}", "a", seconds=0.02 * n) for n in range(4)),
    {"id": "file", "tool": "write_file", "args": {"path": "b.txt", "content": "$b3"}},
    work("c", "b0", "b1", seconds=0.05),
    work("d", "c", "b2", "file"),
    {"id": "end", "tool": "write_file", "args": {"path": "end.txt", "content": "$d"}, "dependsOn": ["c"]},
]


async def _go_on(plans: Plans, ended: Started) -> Started:
    started = await resume.resume(plans.client, ended.id, "ann")
    return Started(plans.client, started.workflow_id)


async def _interrupted(plans: Plans, plan: Started, **message: str) -> View:
    """Interrupt a plan while one of its steps blocks, then let that step finish."""
    await plan.signal("interrupt", message)
    await plan.until(lambda view: view["stopped"], "it is interrupted")
    plans.go()
    return await plan.ended()


async def _resuming(plans: Plans, plan: str) -> list[str]:
    """Ids of the runs that resumed a plan, from the visibility index."""

    async def look() -> list[str]:
        return [each.id async for each in plans.client.list_workflows(f"PlanResumes = '{plan}'")]

    found: list[str] = await until(look, f"{plan} is listed as resumed")
    return list(dict.fromkeys(found))


@pytest.mark.crosses_runs
async def test_an_interrupted_plan_ends_and_goes_on_in_a_run_of_its_own(plans: Plans) -> None:
    plan = await plans.start([work("a", args=WAITS), work("b", "a"), work("c", "b")])
    await plan.until_status("a", "running")
    view = await _interrupted(plans, plan, by="ann")
    assert view["status"] == "cancelled"
    assert view["stopped"] == "interrupted by ann"
    assert statuses(view) == {"a": "completed", "b": "blocked", "c": "blocked"}
    later = await _go_on(plans, plan)
    assert later.id == f"{plan.id}-r2"
    view = await later.ended()
    assert (view["status"], view["resumes"]) == ("completed", plan.id.removeprefix("plan-"))
    assert [line[1] for line in plans.ledger] == ["a", "a", "b", "b", "c", "c"]
    assert step(view, "a")["result"]["value"] == "a"


@pytest.mark.crosses_runs
@pytest.mark.on_server("lists")
async def test_both_runs_name_each_other_and_none_is_resumed_twice(plans: Plans) -> None:
    plan = await plans.start([work("a", args=WAITS), work("b", "a")])
    await _interrupted(plans, plan)
    later = await _go_on(plans, plan)
    first, second = plan.id.removeprefix("plan-"), later.id.removeprefix("plan-")
    assert await resume.links(plans.client, plan.id) == Links(resumes=None, resumed_by=[second])
    assert await resume.links(plans.client, later.id) == Links(resumes=first, resumed_by=[])
    with pytest.raises(Refused, match=f"resumed as '{second}'"):
        await resume.resume(plans.client, plan.id)
    await later.ended()
    assert await _resuming(plans, first) == [later.id]
    with pytest.raises(Refused, match="every step is done"):
        await resume.resume(plans.client, later.id)


@pytest.mark.modes("plain")
@pytest.mark.parametrize("seed", sampled(range(20), 5))
async def test_wherever_a_plan_is_interrupted_it_ends_as_if_it_had_not_been(
    plans: Plans, seed: int, workspace: Path
) -> None:
    chance = random.Random(seed)
    plan = await plans.start(DIAMONDS)
    for _ in range(3):
        await asyncio.sleep(chance.uniform(0.0, 0.25))
        with suppress(RPCError):  # it had ended
            await plan.signal("interrupt")
        view = await plan.ended()
        if view["status"] == "completed":
            break
        plan = await _go_on(plans, plan)
    view = await plan.ended()
    if view["status"] != "completed":
        view = await (await _go_on(plans, plan)).ended()
    assert view["status"] == "completed"
    assert (workspace / "b.txt").read_text() == "b3"
    assert (workspace / "end.txt").read_text() == "d"
    ends = [line[1] for line in plans.ledger if line[0] == "end"]
    assert sorted(ends) == ["a", "b0", "b1", "b2", "b3", "c", "d"]


@pytest.mark.crosses_runs
async def test_a_plan_in_review_and_one_that_waits_or_sleeps_can_be_interrupted(plans: Plans) -> None:
    steps = [work("gate", requiresApproval=True), {"id": "nap", "tool": "sleep", "args": {"seconds": 600}}, work("a")]
    plan = await plans.start(steps, {"review": True})
    await plan.until(lambda view: view["status"] == "review", "review")
    await plan.signal("interrupt")
    view = await plan.ended()
    assert view["status"] == "cancelled"
    assert set(statuses(view).values()) == {"blocked"}
    later = await _go_on(plans, plan)
    await later.until(lambda view: view["status"] == "review", "review again, as it never began")
    await runs.begin(plans.client, later.id)
    await later.until_asked("gate")
    await later.until_status("a", "completed")
    await later.signal("interrupt")
    view = await later.ended()
    assert statuses(view)["a"] == "completed"
    assert view["pending"] == []


@pytest.mark.crosses_runs
async def test_failed_steps_and_those_behind_them_are_done_when_a_plan_is_resumed(plans: Plans) -> None:
    retry = {"attempts": 1}
    steps = [work("a"), work("b", "a", args={"fails": 1}, retry=retry), work("c", "b"), work("d")]
    plan = await plans.start(steps)
    view = await plan.ended()
    assert statuses(view) == {"a": "completed", "b": "failed", "c": "blocked", "d": "completed"}
    view = await (await _go_on(plans, plan)).ended()
    assert view["status"] == "completed"
    ends = [line[1] for line in plans.ledger if line[0] == "end"]
    assert sorted(ends) == ["a", "b", "c", "d"]


@pytest.mark.crosses_runs
async def test_a_resumed_plan_remembers_the_failed_calls_of_a_step_that_runs_again(plans: Plans) -> None:
    retry = {"attempts": 2, "delay": 0.05}
    plan = await plans.start([work("a"), work("b", "a", args={"fails": 2}, retry=retry)])
    assert statuses(await plan.ended())["b"] == "failed"
    later = await _go_on(plans, plan)
    view = await later.ended()
    assert view["status"] == "completed"
    assert "planId" not in view["step_tool_history"]["0"][0]
    calls = view["step_tool_history"]["1"]
    assert [(call["result"], call.get("planId")) for call in calls] == [
        ("Error: call 1 of b fails", plan_id(plan.id)), ("Error: call 2 of b fails", plan_id(plan.id)), ("b", None)
    ]  # fmt: skip
    assert [call.get("attempt") for call in calls] == [1, 2, None]
    assert "work (3 calls)" in await later.handle.query("text")
    started = await resume.rerun(plans.client, later.id, only="b")
    view = await Started(plans.client, started.workflow_id).ended()
    ids = [call.get("planId") for call in view["step_tool_history"]["1"]]
    assert ids == [*2 * [plan_id(plan.id)], plan_id(later.id), None]
    assert [call["result"] for call in view["step_tool_history"]["1"]][2:] == ["b", "b"]


@pytest.mark.crosses_runs
async def test_a_rerun_does_a_step_with_other_arguments_and_all_that_follows(plans: Plans) -> None:
    write = {"id": "w", "tool": "write_file", "args": {"path": "w.txt", "content": "$b"}}
    plan = await plans.start([work("a"), work("b", "a"), write, work("x", "a")])
    assert (await plan.ended())["status"] == "completed"
    change = Replacement(step_id="b", path="args.value", value="other")
    started = await resume.rerun(plans.client, plan.id, start_at="b", changes=[change])
    view = await Started(plans.client, started.workflow_id).ended()
    assert view["status"] == "completed"
    assert (plans.workspace / "w.txt").read_text() == "other"
    ends = [line[1] for line in plans.ledger if line[0] == "end"]
    assert sorted(ends) == ["a", "b", "b", "x"]
    assert view["version"] == 2


async def test_a_rerun_of_one_step_alone_leaves_the_others(plans: Plans) -> None:
    plan = await plans.start([work("a"), work("b", "a"), work("c", "b")])
    await plan.ended()
    started = await resume.rerun(plans.client, plan.id, only="b")
    view = await Started(plans.client, started.workflow_id).ended()
    assert view["status"] == "completed"
    assert sorted(line[1] for line in plans.ledger if line[0] == "end") == ["a", "b", "b", "c"]


@pytest.mark.crosses_runs
async def test_files_that_changed_in_between_are_told(plans: Plans) -> None:
    steps = [
        {"id": "one", "tool": "write_file", "args": {"path": "one.txt", "content": "1"}},
        {"id": "two", "tool": "write_file", "args": {"path": "two.txt", "content": "2"}},
        work("stop", "one", "two", args=WAITS),
        work("more", "stop"),
    ]
    plan = await plans.start(steps)
    await plan.until_status("stop", "running")
    await _interrupted(plans, plan)
    (plans.workspace / "one.txt").write_text("something else")
    (plans.workspace / "two.txt").unlink()
    view = await (await _go_on(plans, plan)).ended()
    told = [entry["text"] for entry in view["log"] if entry["kind"] == "changed"]
    assert told == [
        "file 'one.txt' was changed since the earlier run saw it",
        "file 'two.txt' was deleted since the earlier run saw it",
    ]


@pytest.mark.crosses_runs
async def test_a_kept_step_that_read_a_file_which_has_changed_is_named_with_the_way_to_read_it_again(
    plans: Plans,
) -> None:
    for name in "ab":
        (plans.workspace / f"{name}.txt").write_text(f"good {name}")
    read = {"id": "read", "tool": "read_file", "args": {"path": "{{item}}.txt"}}
    steps: list[dict[str, Any]] = [
        {"id": "each", "forEach": {"items": ["a", "b"], "key": "@"}, "steps": [read]},
        {"id": "put", "tool": "write_file", "args": {"path": "put.txt", "content": "1"}},
        work("stop", "each", "put", args=WAITS),
        work("more", "stop"),
    ]
    plan = await plans.start(steps)
    await plan.until_status("stop", "running")
    await _interrupted(plans, plan)
    for name in ("b", "put"):
        (plans.workspace / f"{name}.txt").write_text("something else")
    resumed = await _go_on(plans, plan)
    view = await resumed.ended()
    told = [entry["text"] for entry in view["log"] if entry["kind"] == "changed"]
    again = f"plan rerun {plan_id(resumed.id)} --from 'each[b].read'"
    assert told[-1] == (
        f"step 'each[b].read' keeps what it read from 'b.txt'; to read it again, once this run has ended: {again}"
    )
    summary = await runs.summary(plans.client, plan_id(resumed.id))
    assert [(each.step_id, each.path) for each in summary.outdated] == [("each[b].read", "b.txt")]
    assert next_actions(summary)[0].command == again
    rerun = await runs.rerun(plans.client, plan_id(resumed.id), start_at="each[b].read")
    assert (await runs.wait(plans.client, rerun.plan_id)).outdated == []


@pytest.mark.crosses_runs
async def test_a_repaired_file_is_read_again_where_nothing_that_is_done_rests_on_what_was_read(plans: Plans) -> None:
    for name, content in {"a": "good-a", "b": "../bad", "used": "../bad", "early": "good-e"}.items():
        (plans.workspace / f"{name}.txt").write_text(content)

    def read(path: str, **more: Any) -> dict[str, Any]:
        return {"tool": "read_file", "args": {"path": path}, **more}

    def write(step_id: str, path: str, **more: Any) -> dict[str, Any]:
        return {"id": step_id, "tool": "write_file", "args": {"path": path, "content": "1"}, **more}

    inside = [read("{{item}}.txt", id="read"), write("write", "{{read}}")]
    plan = await plans.start([
        {"id": "each", "forEach": {"items": ["a", "b"], "key": "@"}, "steps": inside},
        read("used.txt", id="use"), write("done", "done.txt", dependsOn=["use"]), write("again", "{{use}}"),
        read("early.txt", id="early"), write("late", "{{early}}", dependsOn=["each"]),
    ])  # fmt: skip
    assert (await plan.ended())["status"] == "partial"
    for name, content in {"a": "other-a", "b": "good-b", "used": "good-u", "early": "other-e"}.items():
        (plans.workspace / f"{name}.txt").write_text(content)
    # 1. A dry run says so, and starts nothing.
    dry = await resume.would_run(plans.client, plan.id)
    assert dry.read_again == {"each[b].read": "b.txt", "early": "early.txt"}
    assert dry.keep_read == {"each[a].read": "a.txt", "use": "used.txt"}
    assert dry.runs == ["each[b]", "again", "early", "late"]
    assert {"use", "each[a]"} <= set(dry.keeps)
    assert (await resume.links(plans.client, plan.id)).resumed_by == []
    # 2. The new run does it, and says why.
    resumed = await _go_on(plans, plan)
    view = await resumed.ended()
    texts = [entry["text"] for entry in view["log"] if entry["kind"] == "changed"]
    assert texts[:2] == [
        "step 'each[b].read' runs again: its file 'b.txt' has changed since",
        "step 'early' runs again: its file 'early.txt' has changed since",
    ]
    kinds = [entry["kind"] for entry in view["log"]]
    first = kinds.index("resumes")
    assert kinds[first + 1 : first + 3] == ["changed", "changed"], "followers show a new run from this entry on"
    kept = [text.split("'")[1] for text in texts if "keeps what it read" in text]
    assert sorted(kept) == ["each[a].read", "use"]
    assert (plans.workspace / "good-b").exists()
    assert (plans.workspace / "other-e").exists()
    assert not (plans.workspace / "other-a").exists()
    assert statuses(view) == {
        "each": "completed", "use": "completed", "done": "completed", "again": "failed", "early": "completed",
        "late": "completed",
    }  # fmt: skip


async def test_a_file_that_the_plan_itself_or_nobody_has_changed_is_not_read_again(plans: Plans) -> None:
    (plans.workspace / "a.txt").write_text("../bad")
    (plans.workspace / "b.txt").write_text("b")
    steps: list[dict[str, Any]] = [
        {"id": "read", "tool": "read_file", "args": {"path": "a.txt"}},
        {"id": "bad", "tool": "write_file", "args": {"path": "{{read}}", "content": "1"}},
        {"id": "other", "tool": "read_file", "args": {"path": "b.txt"}},
        {"id": "put", "tool": "write_file", "args": {"path": "b.txt", "content": "2"}, "dependsOn": ["other"]},
        work("stop", "put", args={"fails": 9}, retry={"attempts": 1}),
    ]
    plan = await plans.start(steps)
    await plan.ended()
    dry = await resume.would_run(plans.client, plan.id)
    assert (dry.read_again, dry.keep_read) == ({}, {})


async def test_a_plan_that_runs_is_not_resumed(plans: Plans) -> None:
    plan = await plans.start([work("a", requiresApproval=True)])
    await plan.until_asked("a")
    with pytest.raises(Refused, match="has not ended"):
        await resume.resume(plans.client, plan.id)
    await plan.signal("interrupt")
    await plan.ended()
