"""Agents and plans as steps, where workers have a workspace each: they share their plan's place, and move with it."""

from __future__ import annotations

from typing import Any

import pytest

from examples.scripted_llm.script import Script
from examples.scripted_llm.server import ScriptedLlm
from plansurvive.client.verbs.resume import resume
from plansurvive.features.files.verbs import file_changes
from tests.features.hosts.machines import Machines
from tests.kit.driving import GO, WAITS, Plans, Started, View, statuses, step, terminated, work
from tests.kit.waiting import until
from tests.workflows.agents import call, says

FREE: dict[str, Any] = {"requiresApproval": False}
ASKS: dict[str, Any] = {"requiresApproval": True}


def write(name: str, *needs: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "tool": "write_file", "args": {"path": f"{name}.txt", "content": name}, "dependsOn": [*needs],
            **more}  # fmt: skip


def inner(name: str, *steps: dict[str, Any], needs: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"id": name, "tool": "plan", "args": {"steps": [*steps]}, "dependsOn": [*needs]}


def run(name: str, text: str, *needs: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "tool": "run_command", "args": {"command": text}, "dependsOn": [*needs], **FREE, **more}


def moves(view: View) -> list[str]:
    return [entry["text"] for entry in view["log"] if "is lost" in entry["text"]]


def child_of(plan: Started, view: View, step_id: str) -> Started:
    """The child plan that works on a step."""
    return Started(plan.client, f"plan-{step(view, step_id)['child']['planId']}")


async def begun(plan: Started, step_id: str) -> Started:
    """The same, once it is there."""
    view = await plan.until(lambda view: (step(view, step_id).get("child") or {}).get("planId"), f"{step_id} has begun")
    return child_of(plan, view, step_id)


@pytest.mark.slow
@pytest.mark.sampled
async def test_what_works_on_a_step_works_in_the_directory_of_its_plan(machines: Machines, plans: Plans) -> None:
    content = '{"steps": [{"id": "of_file", "tool": "write_file", "args": {"path": "of_file.txt", "content": "x"}}]}'
    steps = [
        {"id": "file", "tool": "write_file", "args": {"path": "inner.json", "content": content}},
        {"id": "loaded", "tool": "plan", "args": {"file": "inner.json"}, "dependsOn": ["file"], **FREE},
        inner("one", write("a"), inner("two", run("b", "cat a.txt > b.txt"), needs=("a",))),
        {"id": "each", "forEach": {"items": ["x", "y"], "as": "item", "mode": "plans"}, "tool": "write_file",
         "args": {"path": "{{item}}.txt", "content": "{{item}}"}},
        run("last", "ls", "loaded", "one", "each"),
    ]  # fmt: skip
    async with machines.up("first"):
        plan = await plans.start(steps)
        view = await plan.ended()
        changed = await file_changes(machines.client, plan.id)
        told = await (await child_of(plan, view, "one").handle.describe()).memo()
    assert told["host"] == "first", "from its start: nothing may be patched in its first turn"
    assert {*statuses(view).values()} == {"completed"}, "\n".join(map(str, [*view["steps"], *view["log"]]))
    names = ["a.txt", "b.txt", "inner.json", "of_file.txt", "x.txt", "y.txt"]
    assert step(view, "last")["result"]["value"]["stdout"].split() == names
    assert [*machines.files("first")] == names
    assert {each.path for one in changed.calls for each in one.changes} >= {"a.txt", "of_file.txt", "x.txt", "y.txt"}


@pytest.mark.slow
async def test_a_plan_moves_with_all_that_works_for_it(machines: Machines, plans: Plans) -> None:
    """Two deep, an agent beside it: each has changed files that only its own checkpoint has."""
    story = [
        says({"tool_calls": [call("write_file", path="agent.txt", content="agent")]}),
        says({"tool_calls": [call("run_command", command="cat agent.txt a.txt > both.txt")]}),
        says({"answer": "Done."}),
    ]
    two = inner("two", write("b"), write("gate", "b", **ASKS), run("c", "cat a.txt b.txt > c.txt", "gate"))
    steps = [
        write("a"),
        inner("one", two, needs=("a",)),
        {"id": "agent", "tool": "agent", "args": {"objective": "Write."}, "dependsOn": ["a"]},
        run("end", "cat c.txt both.txt > end.txt", "one", "agent"),
    ]
    with ScriptedLlm(Script.of(story)) as llm:
        flags = {"openai_base_url": llm.url, "model": "demo"}
        async with machines.up("first", **flags):
            plan = await plans.start(steps)
            nested = await begun(await begun(plan, "one"), "two")
            await nested.until_asked("gate")
            asked = await plan.until(lambda view: step(view, "agent").get("agentAsks"), "the agent's call waits")
            assert {*machines.files("first")} == {"a.txt", "b.txt", "agent.txt"}
        async with machines.up("second", **flags):
            await nested.approve("gate")
            waits = step(asked, "agent")["agentAsks"]
            await Started(plan.client, waits["agentId"]).approve(waits["stepIds"][0])
            view = await plan.ended()
            end = await nested.view()
    assert {*statuses(view).values()} == {"completed"}, "\n".join(map(str, [*view["steps"], *view["log"]]))
    assert len(moves(view)) == 1
    assert (view["host"]["name"], end["host"]["name"], end["workspace"]) == ("second", "second", view["workspace"])
    assert machines.files("second") == {
        "a.txt": "a", "agent.txt": "agent", "b.txt": "b", "gate.txt": "gate", "both.txt": "agenta", "c.txt": "ab",
        "end.txt": "abagenta",
    }  # fmt: skip


@pytest.mark.slow
async def test_children_that_miss_their_host_at_the_same_moment_have_it_moved_once(
    machines: Machines, plans: Plans
) -> None:
    waits = {"id": "waits", "tool": "wait_for", "args": {"event": "go"}}
    names = ["one", "two", "three"]
    async with machines.up("first"):
        plan = await plans.start([inner(name, waits, write(name, "waits")) for name in names])
        children = [await begun(plan, name) for name in names]
        for child in children:
            await child.until_asked("waits")
        token = (await plan.view())["workspace"].rpartition("@")[2]
    for child in children:  # no worker takes them yet: they come in one workflow task
        await plan.signal("place_report", {"child": child.id, "lost": token})
    async with machines.up("second"):
        await plan.until(lambda view: view["host"]["name"] == "second", "it has moved")
        for child in children:
            await child.signal("event", {"name": "go"})
        view = await plan.ended()
    assert {*statuses(view).values()} == {"completed"}, "\n".join(map(str, [*view["steps"], *view["log"]]))
    assert len(moves(view)) == 1
    assert machines.files("second") == {f"{name}.txt": name for name in names}


@pytest.mark.slow
async def test_a_child_that_is_told_to_leave_counts_nothing_more_of_the_old_place(
    machines: Machines, plans: Plans
) -> None:
    """Its step ends at the host that was given up, while the files are restored elsewhere: it is called again there."""
    one = inner("one", work("a"), work("b", "a", args=WAITS), write("gate", "a", **ASKS))
    async with machines.only_steps("first"):
        async with machines.up_without_steps("first"):
            plan = await plans.start([one])
            child = await begun(plan, "one")
            await child.until_asked("gate")
            await until(lambda: "start b" in machines.files("first").get("ledger.txt", ""), "b runs")
        async with machines.up_without_files():
            await child.approve("gate")
            await until(lambda: _left(child), "the child has left")
            for path in (machines.folder / "first" / "workspace").iterdir():
                (path / GO).write_text("")
            await until(lambda: "end b" in machines.files("first")["ledger.txt"], "b ended at the old host")
            await child.until(lambda view: any("it is run again" in e["text"] for e in view["log"]), "it counts not")
            async with machines.up("second"):
                await until(lambda: "start b" in machines.files("second").get("ledger.txt", ""), "b runs again")
                for path in (machines.folder / "second" / "workspace").iterdir():
                    (path / GO).write_text("")
                view = await plan.ended()
    assert {*statuses(view).values()} == {"completed"}, "\n".join(map(str, [*view["steps"], *view["log"]]))
    assert machines.files("second")["ledger.txt"].split("\n")[:3] == ["start a 1", "end a 1", "start b 1"]
    assert machines.files("second")["gate.txt"] == "gate"


@pytest.mark.slow
async def test_a_plan_moves_while_a_child_waits_for_a_worker_to_check_it(machines: Machines, plans: Plans) -> None:
    """The child does not know its features yet, and must answer all the same: its plan waits for that."""
    unchecked = inner("one", {**work("x"), "queue": "nobody-serves-it"})
    async with machines.up("first"):
        plan = await plans.start([unchecked, write("a"), write("gate", "a", **ASKS)])
        child = await begun(plan, "one")
        await plan.until_asked("gate")
    async with machines.up("second"):
        await plan.approve("gate")
        view = await plan.until(lambda view: step(view, "gate")["status"] == "completed", "it has moved")
        inside = await child.handle.query("state")
        await plan.handle.cancel()
        await plan.ended()
    assert (view["host"]["name"], inside["host"]["name"]) == ("second", "second")
    assert "status" not in inside, "it is a draft still"
    assert machines.files("second") == {"a.txt": "a", "gate.txt": "gate"}


@pytest.mark.slow
async def test_a_call_of_a_child_that_must_not_be_repeated_is_in_doubt_when_the_host_is_lost(
    machines: Machines, plans: Plans
) -> None:
    async with machines.up("first"):
        plan = await plans.start([write("a"), inner("one", work("b", args=WAITS, repeatable=False), needs=("a",))])
        child = await begun(plan, "one")
        await until(lambda: "start b" in machines.files("first").get("ledger.txt", ""), "b runs")
    async with machines.up("second"):
        view = await plan.ended()
        inside = await child.view()
    assert statuses(view) == {"a": "completed", "one": "failed"}
    assert step(inside, "b")["result"]["code"] == "OUTCOME_UNKNOWN"
    assert machines.files("second") == {"a.txt": "a"}, "it was not called again"


@pytest.mark.slow
async def test_a_busy_host_keeps_its_plan_and_what_works_for_it(machines: Machines, plans: Plans) -> None:
    one = inner("one", work("a", args=WAITS), work("b", args=WAITS))
    async with machines.up("first", max_activities=1):
        plan = await plans.start([one])
        child = await begun(plan, "one")
        await until(lambda: _pulses(plan), "the plan asks whether the host lives, for its child")
        for path in (machines.folder / "first" / "workspace").iterdir():
            (path / GO).write_text("")
        view = await plan.ended()
        inside = await child.view()
    assert {*statuses(view).values()} | {*statuses(inside).values()} == {"completed"}
    assert moves(view) == moves(inside) == []


@pytest.mark.slow
async def test_a_loop_whose_items_are_plans_moves_between_them(machines: Machines, plans: Plans) -> None:
    items = ["x", "y", "z"]
    loop = {"id": "each", "forEach": {"items": items, "as": "item", "mode": "plans", "batch": 1}, "steps": [
        {"id": "one", "tool": "write_file", "args": {"path": "{{item}}1.txt", "content": "1"}},
        {"id": "two", "tool": "write_file", "args": {"path": "{{item}}2.txt", "content": "2"}, "dependsOn": ["one"],
         **ASKS},
    ]}  # fmt: skip
    async with machines.up("first"):
        plan = await plans.start([loop, run("end", "ls | wc -l", "each")])
        await until(lambda: len(machines.files("first")) == 3, "each item has written a file")
        inside = await plan.handle.query("inside", {"stepId": "each", "direct": True})
        batches = [Started(plan.client, f"plan-{each['child']['planId']}") for each in inside["steps"]]
        asked = [await each.until(lambda view: view["pending"], "it asks") for each in batches]
    async with machines.up("second"):
        for each, found in zip(batches, asked, strict=True):
            await each.approve(found["pending"][0]["stepId"])
        view = await plan.ended()
    assert view["status"] == "completed", view["log"]
    assert step(view, "end")["result"]["value"]["stdout"].strip() == "6"
    assert len(moves(view)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("how", ["cancel", "terminate"])
async def test_a_plan_that_is_resumed_has_what_its_children_had_done(
    machines: Machines, plans: Plans, how: str
) -> None:
    one = inner("one", write("b"), write("gate", "b", **ASKS), run("c", "cat a.txt b.txt > c.txt", "gate"))
    async with machines.up("first"):
        plan = await plans.start([write("a"), inner("over", one, needs=("a",))])
        over = await begun(plan, "over")
        child = await begun(over, "one")
        await child.until_asked("gate")
        if how == "cancel":
            await plan.handle.cancel()
        else:
            await terminated(plan.client, plan.id)
        await child.ended()
        await over.ended()
    async with machines.up("second"):
        again = Started(plan.client, (await resume(machines.client, plan.id)).workflow_id)
        deeper = await begun(await begun(again, "over"), "one")
        await deeper.until_asked("gate")
        await deeper.approve("gate")
        view = await again.ended()
    assert {*statuses(view).values()} == {"completed"}, "\n".join(map(str, [*view["steps"], *view["log"]]))
    assert machines.files("second") == {"a.txt": "a", "b.txt": "b", "gate.txt": "gate", "c.txt": "ab"}


async def test_a_child_plan_with_a_directory_of_its_own_is_refused(machines: Machines, plans: Plans) -> None:
    content = '{"workspace": "sub", "steps": [{"id": "a", "tool": "sleep", "args": {"seconds": 0}}]}'
    steps = [
        {"id": "file", "tool": "write_file", "args": {"path": "inner.json", "content": content}},
        {"id": "one", "tool": "plan", "args": {"file": "inner.json"}, "dependsOn": ["file"], **FREE},
    ]
    async with machines.up("first"):
        view = await plans.run(steps)
    result = step(view, "one")["result"]
    assert result["code"] == "HOST_UNSUPPORTED"
    assert "leave `workspace` out" in result["error"]


async def _left(child: Started) -> bool:
    """Whether a child's history has the word to leave."""
    return any(
        event.workflow_execution_signaled_event_attributes.signal_name == "place" for event in await child.events()
    )


async def _pulses(plan: Started) -> bool:
    return any(each.activity_type.name == "host_pulse" for each in (await plan.scheduled()).values())


async def test_a_message_that_names_another_directory_leads_no_call_there(machines: Machines, plans: Plans) -> None:
    """Whoever may send signals can say that the files are elsewhere; the worker knows which directories are plans'."""
    async with machines.up("first"):
        waits = {"id": "waits", "tool": "wait_for", "args": {"event": "go"}}
        plan = await plans.start([inner("one", waits, write("gate", "waits"))])
        child = await begun(plan, "one")
        view = await child.until_asked("waits")
        elsewhere = {"name": "first", "queue": view["host"]["queue"], "workspace": str(machines.folder), "token": "x"}
        await child.signal("place", {"host": elsewhere})
        await child.until(lambda view: view["workspace"] == str(machines.folder), "it is believed")
        await child.signal("event", {"name": "go"})
        await plan.ended()
        result = step(await child.view(), "gate")["result"]
    assert result["code"] == "NO_HOST"
    assert not (machines.folder / "gate.txt").exists()
