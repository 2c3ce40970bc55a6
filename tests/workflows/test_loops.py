"""Loops, blocks and alternatives on a real server: an item is asked about, fails, and is resumed like any step."""

from __future__ import annotations

import json
from typing import Any

import pytest

from plansurvive.client.verbs import resume
from plansurvive.plans.editing.next_run import Replacement
from tests.kit.driving import WAITS, Plans, Started, View, statuses, step, work
from tests.kit.waiting import until
from tests.workflows.agents import says, serving
from tests.workflows.conftest import MakeWorker
from tests.workflows.talking import talking

Data = dict[str, Any]
MODEL = {"defaults": {"onFailure": "ask_llm"}}


def each(items: Any, *steps: Data, **more: Any) -> Data:
    """A loop over a block, or over the call in `more`; the items are their own keys."""
    rule = items if isinstance(items, dict) else {"items": items, "key": "@"}
    return {"id": "each", "forEach": rule, **({"steps": list(steps)} if steps else {}), **more}


def entry(name: str, *needs: str, **more: Any) -> Data:
    """A step that writes its line, `NAME-ITEM`, into the ledger exactly once."""
    args = {"name": f"{name}-{{{{item}}}}", **more.pop("args", {})}
    return {"id": name, "tool": "enter", "args": args, "dependsOn": list(needs), **more}


def lines(plans: Plans) -> list[str]:
    """The names in the ledger, in order."""
    return [line[0] for line in plans.ledger]


async def inside(plan: Started, step_id: str = "each[*]") -> dict[str, Data]:
    """The steps inside a step, or those that fit a pattern, by id."""
    page = await plan.handle.query("inside", {"stepId": step_id})
    return {found["id"]: found for found in page["steps"]}


async def pending(plan: Started, *step_ids: str) -> View:
    """The first view in which exactly these steps await a person."""
    return await plan.until(
        lambda view: {found["stepId"] for found in view["pending"]} == set(step_ids), f"{step_ids} are pending"
    )


def says_recovery(action: str, **more: Any) -> Data:
    """What the LLM answers when it is asked about a failed step."""
    return {"json": {"action": action, "reason": f"{action} is best", **more}}


async def test_twenty_files_go_through_the_same_three_steps(plans: Plans) -> None:
    names = [f"{number}.txt" for number in range(20)]
    for name in names:
        (plans.workspace / name).write_text(f"text of {name}")
    steps = [
        {"id": "read", "tool": "read_file", "args": {"path": "{{item}}"}},
        {"id": "write", "tool": "write_file", "args": {"path": "out/{{item}}", "content": "{{read}}!"}},
        {"id": "again", "tool": "read_file", "args": {"path": "{{write.path}}"}},
    ]
    end = {"id": "end", "tool": "write_file", "args": {"path": "end.json", "content": "{{each[*].again}}"}}
    plan = await plans.start([work("list", args={"value": names}), each("list", *steps), end])
    view = await plan.ended()
    assert (view["status"], set(statuses(view).values())) == ("completed", {"completed"})
    assert step(view, "each")["inside"]["counts"] == {"completed": 20}
    assert json.loads((plans.workspace / "end.json").read_text()) == [f"text of {name}!" for name in names]


@pytest.mark.crosses_runs
async def test_of_a_loop_with_one_failed_item_only_that_item_runs_after_the_mend(plans: Plans) -> None:
    for name in "ac":
        (plans.workspace / f"{name}.txt").write_text(name)
    read = {"id": "read", "tool": "read_file", "args": {"path": "{{item}}.txt"}, "dependsOn": ["first"]}
    plan = await plans.start([each(list("abc"), entry("first"), read, entry("last", "read")), work("end", "each")])
    view = await plan.ended()
    assert (view["status"], step(view, "each")["result"]["code"]) == ("partial", "ITEMS_FAILED")
    assert sorted(lines(plans)) == ["first-a", "first-b", "first-c", "last-a", "last-c"]
    (plans.workspace / "b.txt").write_text("b")
    again = Started(plan.client, (await resume.resume(plan.client, plan.id)).workflow_id)
    view = await again.ended()
    assert view["status"] == "completed"
    assert lines(plans)[5:7] == ["last-b", "start"], "of the items only the failed one ran, from its failed step on"
    assert [*await again.scheduled()][-3:] == ["each[b].read", "each[b].last", "end"]


@pytest.mark.crosses_runs
async def test_items_are_approved_and_denied_by_raw_signals(plans: Plans) -> None:
    loop = entry("x", requiresApproval=True) | each({"items": list("abc"), "key": "@", "tolerate": 1})
    plan = await plans.start([loop, work("after")])
    await pending(plan, "each[a]", "each[b]", "each[c]")
    await plan.signal("approve", {"stepId": "each[b]"})
    await pending(plan, "each[a]", "each[c]")
    await plan.signal("deny", {"stepId": "each[a]", "by": "ann"})
    await plan.signal("approve", {"stepId": "each[c]"})
    view = await plan.ended()
    assert (view["status"], step(view, "each")["result"]["value"]) == ("partial", [None, "x-b", "x-c"])
    assert sorted(line for line in lines(plans) if line.startswith("x-")) == ["x-b", "x-c"]
    assert {name: found["status"] for name, found in (await inside(plan)).items()} == {
        "each[a]": "skipped", "each[b]": "completed", "each[c]": "completed"
    }  # fmt: skip


async def test_agents_are_mapped_over_a_list(idle: Plans, make_worker: MakeWorker) -> None:
    story = [says({"answer": f"about {name}"}, when={"last": f"Look at {name}"}, times=0) for name in ("cats", "dogs")]
    agents = each(["cats", "dogs"], tool="agent", args={"objective": "Look at {{item}}."})
    async with serving(idle, make_worker)(story) as running:
        view = await running.plans.run([agents])
    assert (view["status"], step(view, "each")["result"]["value"]) == ("completed", ["about cats", "about dogs"])


@pytest.mark.crosses_runs
async def test_items_ask_questions_and_wait_for_events_each_for_itself(plans: Plans) -> None:
    ask = {"id": "ask", "tool": "ask", "args": {"question": "How about {{item}}?", "choices": ["good", "bad"]}}
    wait = {"id": "wait", "tool": "wait_for", "args": {"event": "paid", "match": "of == {{item}}"}}
    plan = await plans.start([each(["a", "b"], ask, wait)])
    await pending(plan, "each[a].ask", "each[b].ask")
    await plan.signal("answer", {"stepId": "each[b].ask", "value": "good"})
    await plan.signal("event", {"name": "paid", "data": {"of": "b"}})
    await plan.signal("event", {"name": "paid", "data": {"of": "a"}})
    await plan.signal("answer", {"stepId": "each[a].ask", "value": "bad"})
    view = await plan.ended()
    assert view["status"] == "completed"
    assert step(view, "each")["result"]["value"] == [
        {"ask": "bad", "wait": {"of": "a"}}, {"ask": "good", "wait": {"of": "b"}}
    ]  # fmt: skip


async def test_the_llm_retries_an_item_with_other_arguments_and_skips_another(
    idle: Plans, make_worker: MakeWorker
) -> None:
    (idle.workspace / "found.txt").write_text("found")
    rule = {"items": ["a", "b"], "key": "@", "maxParallel": 1}
    read = each(rule, tool="read_file", args={"path": "{{item}}.txt"})
    answers = [says_recovery("retry", args={"path": "found.txt"}), says_recovery("skip")]
    async with talking(make_worker, *answers):
        plan = await idle.start([read], **MODEL)
        view = await plan.ended()
    assert view["status"] == "completed"
    assert set(step(view, "each")["result"]["value"]) == {"found", None}, "whichever was answered first"


async def test_the_llm_inserts_a_step_into_the_block_of_one_item(idle: Plans, make_worker: MakeWorker) -> None:
    (idle.workspace / "a.txt").write_text("a")
    read = {"id": "read", "tool": "read_file", "args": {"path": "{{item}}.txt"}}
    made = {"id": "make", "tool": "write_file", "args": {"path": "b.txt", "content": "made"}}
    async with talking(make_worker, says_recovery("insert", steps=[made])):
        plan = await idle.start([each(["a", "b"], read)], **MODEL)
        view = await plan.ended()
        found = await inside(plan, "each[b].make")
    assert view["status"] == "completed", step(view, "each")
    assert [value["read"] for value in step(view, "each")["result"]["value"]] == ["a", "made"]
    assert found or "each[b].make" in await plan.scheduled()


async def test_a_round_begins_when_the_delay_is_over_and_an_interrupt_ends_the_delay(plans: Plans) -> None:
    once = {**work("poll"), "repeat": {"until": "@ == '2'", "limit": 5, "delay": 0.1}}
    quick = await plans.run([once | {"args": {"name": "p", "value": "{{round}}"}}])
    assert (quick["status"], step(quick, "poll")["result"]["value"]) == ("completed", "2")
    slow = once | {"args": {"name": "q", "value": "{{round}}"}, "repeat": {"until": "@ == '2'", "delay": 3_000}}
    plan = await plans.start([slow, work("after", "poll")])
    await until(lambda: ["end", "q"] in [line[:2] for line in plans.ledger], "the first round has ended")
    await plan.until(lambda view: step(view, "poll")["inside"]["counts"] == {"completed": 1}, "one round")
    await plan.signal("interrupt")
    view = await plan.ended()
    assert (view["status"], step(view, "poll")["result"]["code"]) == ("cancelled", "NOT_FINISHED")
    changes = [Replacement(step_id="poll", path="repeat.delay", value=0)]
    again = Started(plan.client, (await resume.resume(plan.client, plan.id, changes=changes)).workflow_id)
    view = await again.ended()
    assert (view["status"], step(view, "poll")["result"]["value"]) == ("completed", "2")
    assert [*await again.scheduled()] == ["poll#2@1", "after"]


async def test_an_alternative_is_chosen_its_failure_caught_and_its_finally_run(plans: Plans) -> None:
    bad = {"id": "bad", "tool": "refuse", "args": {"code": "{{item}}"}}
    choice = {
        "id": "choice",
        "switch": [{"when": "item != 'GOOD'", "steps": [bad]}, {"steps": [entry("good")]}],
        "catch": [{"codes": ["KNOWN"], "steps": [entry("caught", args={"name": "{{error.code}}"})]}],
        "finally": [entry("clean", args={"name": "clean-{{item}}-{{status}}"})],
    }
    plan = await plans.start([each({"items": ["GOOD", "KNOWN", "OTHER"], "key": "@", "tolerate": 1}, choice)])
    view = await plan.ended()
    assert view["status"] == "completed"
    value = step(view, "each")["result"]["value"]
    assert value == [{"choice": {"good": "good-GOOD"}}, {"choice": {"caught": "KNOWN"}}, None]
    cleaned = ["clean-GOOD-completed", "clean-KNOWN-completed", "clean-OTHER-failed"]
    assert sorted(lines(plans)) == ["KNOWN", *cleaned, "good-GOOD"]


@pytest.mark.slow
async def test_a_cancelled_block_runs_its_finally_whole_and_no_further_item(plans: Plans) -> None:
    inner = {"id": "rows", "forEach": {"items": ["p", "q"], "as": "row"}, "tool": "enter", "args": {"name": "{{row}}"}}
    poll = work("poll", "rows", args={"value": "{{round}}"}) | {"repeat": {"until": "@ == '2'", "delay": 0.05}}
    last = entry("clean", "poll", args={"name": "clean-{{item}}-{{status}}"})
    slow = work("slow", args={**WAITS, "name": "slow-{{item}}"})
    rule = {"items": ["a", "b"], "key": "@", "maxParallel": 1}
    plan = await plans.start([each(rule, {"id": "in", "steps": [slow], "finally": [inner, poll, last]})])
    await until(lambda: plans.ledger, "the first item works")
    await plan.handle.cancel()
    view = await plan.ended()
    assert view["status"] == "cancelled"
    *rows, cleaned = [name for name in lines(plans) if name not in ("start", "end")]
    assert (sorted(rows), cleaned) == (["p", "q"], "clean-a-cancelled")


async def test_a_paused_loop_begins_no_item_until_it_is_unpaused(plans: Plans) -> None:
    rule = {"items": ["a", "b", "c"], "key": "@", "maxParallel": 1}
    plan = await plans.start([each(rule, tool="work", args={**WAITS, "name": "{{item}}"})])
    await until(lambda: plans.ledger, "the first item works")
    await plan.signal("pause")
    await plan.until_logged("paused")
    plans.go()
    await plan.until(lambda view: step(view, "each")["inside"]["counts"].get("completed") == 1, "the first has ended")
    assert [line[1] for line in plans.ledger] == ["a", "a"]
    await plan.signal("unpause")
    view = await plan.ended()
    assert (view["status"], step(view, "each")["result"]["value"]) == ("completed", ["a", "b", "c"])


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_loop_over_a_list_outside_history_and_its_large_values_are_used_whole(plans: Plans) -> None:
    items = [{"name": f"file number {number}", "pad": "x" * 200} for number in range(60)]
    (plans.workspace / "list.json").write_text(json.dumps(items))
    rule = {"items": "list[?name != 'file number 7']", "key": "name", "maxParallel": 8}
    heavy = work("heavy", args={"value": "{{item}}" + "y" * 10_000}) | {"forEach": {"items": ["a", "b"]}}
    plan = await plans.start([
        {"id": "list", "tool": "read_json", "args": {"path": "list.json"}},
        each(rule, tool="write_file", args={"path": "o/{{index}}.txt", "content": "{{item.name}}"}),
        heavy,
        {"id": "one", "tool": "write_file", "args": {"path": "one.txt", "content": "$heavy[1]"}},
        {"id": "all", "tool": "write_file", "args": {"path": "all.txt", "content": "{{heavy}} {{each[0].path}}"}},
        {"id": "lengths", "forEach": "heavy[*]", "tool": "enter", "args": {"name": "{{index}}"}},
    ])  # fmt: skip
    view = await plan.ended()
    assert view["status"] == "completed", statuses(view)
    assert (plans.workspace / "o/7.txt").read_text() == "file number 8"
    assert len(list((plans.workspace / "o").iterdir())) == 59
    assert (plans.workspace / "one.txt").read_text() == "b" + "y" * 10_000
    whole = json.dumps(["a" + "y" * 10_000, "b" + "y" * 10_000])
    assert (plans.workspace / "all.txt").read_text().replace(" ", "") == (whole + " o/0.txt").replace(" ", "")


async def test_the_items_of_a_child_plan_run_as_those_of_any_plan(plans: Plans) -> None:
    view = await plans.run([{"id": "sub", "tool": "plan", "args": {"steps": [each(["a", "b"], entry("x"))]}}])
    assert view["status"] == "completed"
    assert step(view, "sub")["result"]["value"] == {"each": [{"x": "x-a"}, {"x": "x-b"}]}
    assert sorted(lines(plans)) == ["x-a", "x-b"]


def grid(size: int, leaves: int) -> Data:
    """A loop of loops: in the middle level a person approves, in each leaf a line is written."""
    leaf = {"id": "leaf", "forEach": {"items": [str(number) for number in range(leaves)], "as": "z", "key": "@"}}
    leaf |= {"tool": "enter", "args": {"name": "{{x}}.{{y}}.{{z}}"}, "dependsOn": ["gate"]}
    gate = {"id": "gate", "tool": "enter", "args": {"name": "gate-{{x}}.{{y}}"}, "requiresApproval": True}
    names = [str(number) for number in range(size)]
    middle = {
        "id": "middle",
        "forEach": {"items": names, "as": "y", "key": "@"},
        "steps": [gate, leaf],
        "output": "leaf",
    }
    return {"id": "outer", "forEach": {"items": names, "as": "x", "key": "@"}, "steps": [middle], "output": "middle"}


def asked(view: View) -> int:
    """How many steps await a person."""
    more: dict[str, int] = view.get("morePending", {})
    return len(view["pending"]) + sum(more.values())


@pytest.mark.modes("short")
@pytest.mark.parametrize(("size", "leaves"), [(3, 2), pytest.param(20, 5, marks=pytest.mark.slow)])
async def test_loops_in_loops_survive_an_edit_new_runs_and_an_interrupt(plans: Plans, size: int, leaves: int) -> None:
    wanted = {f"{x}.{y}.{z}" for x in range(size) for y in range(size) for z in range(leaves)}
    options = {"historyLimit": 10 if size < 10 else 1_000}
    values = {"id": "values", "tool": "write_file", "args": {"path": "values.json", "content": "{{outer}}"}}
    plan = await plans.start([grid(size, leaves), values], options)
    half = size // 2
    await plan.until(lambda view: asked(view) == size * size, "all ask")
    for x in range(half):
        await plan.approve(f"outer[{x}].middle[*].gate", by="ann")
    done = {name for name in wanted if int(name.split(".")[0]) < half}
    await until(lambda: done <= set(lines(plans)), "the first half is written")
    edited = {"op": "set", "stepId": f"outer[{half}].middle[0].leaf", "path": "args.name", "value": "edited.{{z}}"}
    answer = await plan.handle.execute_update("edit", {"edits": [edited], "by": "bob"})
    assert answer["version"] == 2
    await plan.signal("approve", {"stepId": f"outer[{half}].middle[0].gate"})
    await until(lambda: "edited.0" in lines(plans), "the edited item runs")
    await plan.signal("interrupt")
    view = await plan.ended()
    assert view["status"] == "cancelled"
    assert len(await plan.histories()) > 1
    again = Started(plan.client, (await resume.resume(plan.client, plan.id)).workflow_id)
    gates = size * size - half * size - 1
    await again.until(lambda view: asked(view) == gates, "the rest asks")
    await again.approve("outer[*].middle[*].gate", by="ann")
    view = await again.ended()
    assert view["status"] == "completed"
    changed = {f"{half}.0.{z}": f"edited.{z}" for z in range(leaves)}
    written = sorted(name for name in lines(plans) if not name.startswith(("gate", "start", "end")))
    assert written == sorted(changed.get(name, name) for name in wanted), "every line exactly once"
    found = json.loads((plans.workspace / "values.json").read_text())
    names = [[[f"{x}.{y}.{z}" for z in range(leaves)] for y in range(size)] for x in range(size)]
    names[half][0] = [f"edited.{z}" for z in range(leaves)]
    assert found == names, "in the order of the items"
