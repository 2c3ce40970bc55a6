"""Plan steps: a child workflow whose value, files and questions become the step's."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ApplicationError

from plansurvive.client import runs
from plansurvive.client.children.naming import located, parts
from plansurvive.client.listing import list_plans
from plansurvive.client.verbs import resume
from plansurvive.features.files.verbs import undo
from tests.kit.driving import WAITS, Plans, Started, step, work
from tests.kit.waiting import until
from tests.workflows.agents import Serving, call, says, serving

pytestmark = [pytest.mark.oldest_server, pytest.mark.uses("children")]


def sub(step_id: str, *needs: str, **args: Any) -> dict[str, Any]:
    """A step that runs a plan."""
    return {"id": step_id, "tool": "plan", "args": args, "dependsOn": list(needs)}


def child_of(plan: Started, step_id: str, number: int = 1) -> Started:
    """The child plan of a step."""
    return Started(plan.client, f"{plan.id}-{step_id}" + (f"-{number}" if number > 1 else ""))


def written(plans: Plans, name: str, **plan: Any) -> str:
    """Write a plan file into the workspace; returns its path."""
    (plans.workspace / name).write_text(json.dumps(plan))
    return name


WRITE = {"id": "write", "tool": "write_file", "args": {"path": "{{inputs.name}}.txt", "content": "hello"}}
READ = {"id": "read", "tool": "read_file", "args": {"path": "$write.path"}}


async def test_the_value_and_the_files_of_a_child_plan_are_those_of_its_step(plans: Plans) -> None:
    file = written(
        plans, "child.json", title="Greets", inputs={"name": {"type": "string"}}, steps=[WRITE, READ],
        outputs={"text": "read", "bytes": "write.bytes", "name": "inputs.name"}, timeout=3600,
    )  # fmt: skip
    steps = [
        sub("greet", file=file, inputs={"name": "a"}),
        sub("inline", "greet", steps=[WRITE, READ], inputs={"name": "$greet.text"}),
        {"id": "end", "tool": "write_file", "args": {"path": "end.txt", "content": "{{greet.text}} {{inline.read}}"}},
    ]
    plan = await plans.start(steps)
    view = await plan.ended()
    assert view["status"] == "completed"
    assert step(view, "greet")["result"]["value"] == {"text": "hello", "bytes": 5, "name": "a"}
    assert step(view, "inline")["result"]["value"]["read"] == "hello"
    assert (plans.workspace / "end.txt").read_text() == "hello hello"
    assert view["step_files"] == {"0": ["a.txt"], "1": ["hello.txt"], "2": ["end.txt"]}
    child = step(view, "greet")["child"]
    assert (child["planId"], child["title"], child["status"]) == (f"{plan.id[5:]}-greet", "Greets", "completed")
    memo = await (await child_of(plan, "greet").handle.describe()).memo()
    assert memo["timeout"] == 3600, "what a resumed one would add in its first turn, where nothing may be patched"
    assert child["counts"] == {"total": 2, "completed": 2}
    assert (await child_of(plan, "greet").view())["value"]["value"]["bytes"] == 5


async def test_a_child_plan_that_did_not_complete_fails_its_step_and_names_what_failed(plans: Plans) -> None:
    bad = {"id": "bad", "tool": "read_file", "args": {"path": "none.txt"}}
    critical = [bad | {"critical": True}]
    steps = [
        sub("partial", steps=[WRITE | {"args": {"path": "p.txt", "content": "p"}}, bad]),
        sub("failed", steps=critical),
        sub("deep", steps=[sub("inner", steps=critical)]),
        sub("missing", file="missing.json"),
        sub("outside", file="../x.json"),
        sub("odd", file=written(plans, "odd.json", steps=[{"id": "x", "tool": "no_such"}])),
        sub("output", file=written(plans, "o.json", steps=[work("a")], outputs={"x": "sum(a)"})),
    ]
    view = await plans.run(steps)
    found = {each["id"]: each["result"] for each in view["steps"]}
    codes = {name: result["code"] for name, result in found.items()}
    assert codes == {
        "partial": "PLAN_PARTIAL", "failed": "PLAN_FAILED", "deep": "PLAN_PARTIAL", "missing": "NOT_FOUND",
        "outside": "PATH_OUTSIDE", "odd": "INVALID_PLAN", "output": "BAD_OUTPUT",
    }  # fmt: skip
    assert "step 'bad' failed (NOT_FOUND)" in found["partial"]["error"]
    assert "step 'inner' failed (PLAN_FAILED)" in found["deep"]["error"]
    assert view["step_files"]["0"] == ["p.txt"]


async def test_a_child_plan_gives_values_that_are_too_long_for_history_whole(plans: Plans) -> None:
    (plans.workspace / "long.txt").write_text("x" * 300_000)
    long = {"id": "long", "tool": "read_file", "args": {"path": "long.txt"}}
    outputs = {"both": "join('-', [long, short])", "size": "length(long)"}
    file = written(plans, "child.json", steps=[long, work("short", args={"value": "y"})], outputs=outputs)
    end = {"id": "end", "tool": "write_file", "args": {"path": "end.txt", "content": "$run.both"}}
    view = await plans.run([sub("run", file=file), end])
    assert view["status"] == "completed"
    assert (plans.workspace / "end.txt").read_text() == "x" * 300_000 + "-y"


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_plan_that_runs_itself_ends_at_the_deepest_level(plans: Plans) -> None:
    file = written(plans, "self.json", steps=[sub("again", file="self.json")], outputs={"x": "again"})
    view = await plans.run([sub("begin", file=file)])
    assert "NESTED_TOO_DEEP" in step(view, "begin")["result"]["error"]


async def test_a_person_who_knows_the_parent_sees_what_its_child_asks(plans: Plans) -> None:
    asks = work("ask", requiresApproval=True)
    plan = await plans.start([sub("outer", steps=[sub("inner", steps=[asks])])])
    inner = f"{plan.id.removeprefix('plan-')}-outer-inner"
    view = await plan.until(
        lambda view: (step(view, "outer").get("child") or {}).get("pending"), "the question is told"
    )
    assert step(view, "outer")["child"]["pending"] == [
        {"planId": inner, "stepId": "ask", "path": "inner/ask", "kind": "approval"}
    ]
    await Started(plan.client, f"plan-{inner}").approve("ask")
    assert (await plan.ended())["status"] == "completed"


async def test_an_approval_of_a_plan_step_covers_exactly_the_content_that_was_loaded(plans: Plans) -> None:
    file = written(plans, "child.json", steps=[work("one")])
    plan = await plans.start([sub("run", file=file) | {"requiresApproval": True}])
    view = await plan.until_asked("run")
    written(plans, "child.json", steps=[work("two")])
    [asked] = view["pending"]
    await plan.approve("run", digest=asked["digest"])
    await plan.ended()
    assert [line[1] for line in plans.ledger if line[0] == "start"] == ["one"]


async def test_a_waiver_in_a_file_that_nobody_started_does_not_count(plans: Plans) -> None:
    waived = {"id": "rm", "tool": "run_command", "args": {"command": "true"}, "requiresApproval": False}
    file = written(plans, "child.json", steps=[waived])
    plan = await plans.start([sub("run", file=file), sub("own", steps=[waived])])
    await child_of(plan, "run").until_asked("rm")
    assert step(await child_of(plan, "own").ended(), "rm")["status"] == "completed"
    await child_of(plan, "run").deny("rm")
    view = await plan.ended()
    assert step(view, "run")["result"]["code"] == "PLAN_PARTIAL"


async def test_cancelling_the_parent_cancels_its_child_and_keeps_its_files(plans: Plans) -> None:
    steps = [WRITE | {"args": {"path": "a.txt", "content": "a"}}, work("slow", "write", args=WAITS)]
    plan = await plans.start([sub("run", steps=steps)])
    child = child_of(plan, "run")
    await child.until_status("slow", "running")
    await plan.handle.cancel()
    view = await plan.ended()
    assert (view["status"], step(view, "run")["result"]["code"]) == ("cancelled", "CANCELLED")
    assert (await child.view())["status"] == "cancelled"
    assert view["step_files"] == {"0": ["a.txt"]}


async def test_a_pause_reaches_the_child_and_so_does_its_end(plans: Plans) -> None:
    steps = [work("first", args=WAITS), work("second", "first")]
    plan = await plans.start([sub("run", steps=steps)])
    child = child_of(plan, "run")
    await child.until_status("first", "running")
    await plan.signal("pause")
    await child.until(lambda view: view["status"] == "paused", "the child is paused")
    plans.go()
    await child.until_status("first", "completed")
    assert step(await child.view(), "second")["status"] == "ready"
    await plan.signal("unpause")
    assert (await plan.ended())["status"] == "completed"


async def test_a_child_that_continues_as_new_is_waited_for_and_cancelled_alike(plans: Plans) -> None:
    steps = [work(f"s{number}", *([f"s{number - 1}"] if number else [])) for number in range(12)]
    plan = await plans.start([sub("run", steps=steps)], {"historyLimit": 30})
    view = await plan.ended()
    assert view["status"] == "completed"
    assert len(await child_of(plan, "run").histories()) > 1
    assert list(step(view, "run")["result"]["value"]) == [each["id"] for each in steps]


async def test_a_child_that_a_person_terminates_fails_its_step(plans: Plans) -> None:
    plan = await plans.start([sub("run", steps=[work("slow", args=WAITS)])])
    child = child_of(plan, "run")
    await child.until_status("slow", "running")
    await child.handle.terminate("gone")
    view = await plan.ended()
    assert (view["status"], step(view, "run")["result"]["code"]) == ("partial", "PLAN_FAILED")
    plans.go()


async def _stopped(plans: Plans, plan: Started, how: str) -> None:
    """Stop a plan whose child plan runs a step that waits to be told to end."""
    child = child_of(plan, "run")
    await child.until_status("slow", "running")
    if how == "interrupt":
        await plan.signal("interrupt")
        await child.until(lambda view: view["stopped"], "the child is interrupted")
        plans.go()
        await plan.ended()
    elif how == "terminate":
        await plan.handle.terminate("by a test")
        await child.ended()
    else:
        await plan.handle.cancel()
        await plan.ended()


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.parametrize("how", ["interrupt", "cancel", "terminate"])
async def test_resuming_the_parent_resumes_its_child_which_keeps_what_is_done(plans: Plans, how: str) -> None:
    steps = [work("first"), work("slow", "first", args=WAITS), work("last", "slow")]
    file = written(plans, "child.json", steps=steps)
    plan = await plans.start([sub("run", file=file)])
    await _stopped(plans, plan, how)
    written(plans, "child.json", steps=[work("other")])
    plans.go()
    again = await resume.resume(plans.client, plan.id)
    later = Started(plans.client, again.workflow_id)
    view = await later.ended()
    assert view["status"] == "completed"
    child = await child_of(later, "run").view()
    assert child["resumes"] == child_of(plan, "run").id.removeprefix("plan-")
    assert [line[1] for line in plans.ledger if line[0] == "start"].count("first") == 1
    assert [line[1] for line in plans.ledger if line[0] == "end"][-1] == "last"
    assert list(step(view, "run")["result"]["value"]) == ["first", "slow", "last"]
    links = await resume.links(plans.client, child_of(plan, "run").id)
    assert links.resumed_by == [child_of(later, "run").id.removeprefix("plan-")]


async def test_a_resumed_child_plan_reads_a_repaired_file_again(plans: Plans) -> None:
    (plans.workspace / "in.txt").write_text("../bad")
    read: dict[str, Any] = {"id": "read", "tool": "read_file", "args": {"path": "in.txt"}}
    write: dict[str, Any] = {"id": "write", "tool": "write_file", "args": {"path": "{{read}}", "content": "1"}}
    plan = await plans.start([sub("run", steps=[read, write])])
    assert (await plan.ended())["status"] == "partial"
    (plans.workspace / "in.txt").write_text("good")
    again = await resume.resume(plans.client, plan.id)
    later = Started(plans.client, again.workflow_id)
    assert (await later.ended())["status"] == "completed"
    texts = [entry["text"] for entry in (await child_of(later, "run").view())["log"] if entry["kind"] == "changed"]
    assert texts[0] == "step 'read' runs again: its file 'in.txt' has changed since"


async def test_a_rerun_loads_the_plan_again(plans: Plans) -> None:
    file = written(plans, "child.json", steps=[work("one")])
    plan = await plans.start([sub("run", file=file)])
    await plan.ended()
    written(plans, "child.json", steps=[work("two")])
    again = await resume.rerun(plans.client, plan.id, start_at="run")
    await Started(plans.client, again.workflow_id).ended()
    assert [line[1] for line in plans.ledger if line[0] == "start"] == ["one", "two"]


async def test_a_step_of_a_child_plan_is_decided_by_its_path_and_listed_with_its_parent(plans: Plans) -> None:
    asks = work("ask", requiresApproval=True)
    plan = await plans.start([sub("outer", steps=[sub("inner", steps=[asks])])])
    inner = f"{plan.id.removeprefix('plan-')}-outer-inner"
    await plan.until(lambda view: "pending" in step(view, "outer").get("child", {}), "the question is told")
    assert [(each.plan_id, each.step_id) async for each in runs.pending(plans.client, plan=plan.id)] == [(inner, "ask")]
    assert await located(plans.client, plan.id, "outer/inner/ask") == (inner, "ask")
    text = await runs.text(plans.client, plan.id, detailed=True)
    assert f"plan approve {plan.id.removeprefix('plan-')} outer/inner/ask" in text
    await runs.approve(plans.client, plan.id, runs.Choice(step_id="outer/inner/ask", by="ann"))
    assert (await plan.ended())["status"] == "completed"


def test_a_path_is_split_outside_of_the_brackets_of_instances() -> None:
    assert parts("load[a/b].check/ask[x]/y") == ["load[a/b].check", "ask[x]", "y"]


async def test_undoing_a_plan_undoes_what_its_child_plans_wrote(plans: Plans) -> None:
    deeper = sub("inner", steps=[{"id": "deep", "tool": "write_file", "args": {"path": "deep.txt", "content": "d"}}])
    own = {"id": "own", "tool": "write_file", "args": {"path": "own.txt", "content": "o"}}
    plan = await plans.start([own, sub("run", steps=[deeper])])
    assert (await plan.ended())["status"] == "completed"
    report = await undo(plans.client, plan.id, "run")
    assert [each.path for each in report.restored] == ["deep.txt"]
    report = await undo(plans.client, plan.id)
    assert not list(plans.workspace.glob("*.txt"))


@pytest.mark.on_server("lists")
async def test_child_plans_are_not_listed_as_plans(plans: Plans) -> None:
    plan = await plans.start([sub("run", steps=[work("a")])])
    await plan.ended()

    async def listed() -> list[str]:
        return [each.plan_id async for each in list_plans(plans.client) if each.plan_id.startswith(plan.id[5:])]

    await until(listed, "the plan is listed")
    assert f"{plan.id[5:]}-run" not in await listed()
    assert await listed() == [plan.id[5:]]


async def test_a_mistake_in_inline_steps_is_a_problem_of_the_plan_with_its_place(plans: Plans) -> None:
    plan = await plans.start([sub("run", steps=[{"id": "x", "tool": "read_file", "args": {"path": "$y"}}])])
    with pytest.raises(WorkflowFailureError) as failure:
        await plan.handle.result()
    cause = failure.value.cause
    assert isinstance(cause, ApplicationError)
    [problem] = cause.details[0]
    assert (problem["code"], problem["stepId"], problem["field"]) == ("BAD_REFERENCE", "run", "args.steps.x.args.path")


async def test_a_plan_runs_once_for_each_item_of_a_list(plans: Plans) -> None:
    file = written(
        plans, "child.json", inputs={"name": {"type": "string"}}, steps=[WRITE], outputs={"path": "write.path"}
    )
    each = sub("each", file=file, inputs={"name": "$item"}) | {"forEach": {"items": ["a", "b/c"], "key": "@"}}
    end = {"id": "end", "tool": "write_file", "args": {"path": "end.json", "content": "{{each}}"}}
    view = await plans.run([each, end], outputs={"paths": "each[].path"})
    assert (view["status"], view["value"]["value"]) == ("completed", {"paths": ["a.txt", "b/c.txt"]})
    assert json.loads((plans.workspace / "end.json").read_text()) == [{"path": "a.txt"}, {"path": "b/c.txt"}]
    assert (plans.workspace / "b" / "c.txt").read_text() == "hello"


@pytest.fixture
def serve(idle: Plans, make_worker: Callable[..., Any]) -> Serving:
    """A scripted LLM and a worker that uses it."""
    return serving(idle, make_worker)


def agent(step_id: str) -> dict[str, Any]:
    """A step whose agent asks its model again and again."""
    return {"id": step_id, "tool": "agent", "args": {"objective": "Look."}}


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.modes("plain")
async def test_agents_of_child_plans_share_the_budget_of_the_plan_exactly(serve: Serving) -> None:
    looks = says({"tool_calls": [call("list_directory", path=".")]}, times=0)
    async with serve([looks]) as agents:
        steps = [sub("one", steps=[agent("a"), agent("b")]), sub("two", steps=[sub("deep", steps=[agent("c")])])]
        view = await (await agents.plans.start(steps, budget={"calls": 7, "ask": False})).ended()
        assert len(agents.llm.play.seen) == 7
    assert view["tokens"]["calls"] == 7
    assert sum(view["tokens"]["byStep"].values()) == view["tokens"]["totalTokens"] > 0
    assert {step(view, name)["result"]["code"] for name in ("one", "two")} == {"PLAN_PARTIAL"}
    assert "of the LLM budget are spent" in step(view, "one")["result"]["error"]


@pytest.mark.modes("plain")
async def test_what_child_plans_spend_counts_in_their_plan_without_a_budget(serve: Serving) -> None:
    done = says({"answer": "done", "confidence": "high"}, times=0)
    async with serve([done]) as agents:
        view = await (await agents.plans.start([sub("one", steps=[agent("a"), agent("b")])])).ended()
    assert view["tokens"]["calls"] == 2
    assert step(view, "one")["result"]["value"] == {"a": "done", "b": "done"}
