"""Agent steps: a child workflow whose answer, files and tool calls become the step's."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError
from temporalio.service import RPCError

from examples.scripted_llm.script import Script
from plansurvive.client.verbs import resume
from plansurvive.client.verbs.resume import Links
from plansurvive.features.agents import verbs
from plansurvive.features.agents.model.history import Entry
from plansurvive.plans.editing.next_run import Replacement
from plansurvive.workflows.search_attributes import PLAN_RESUMES, PLAN_STATUS
from tests.kit.driving import WAITS, Plans, Started, View, step, terminated, work
from tests.kit.waiting import until
from tests.nightly import only_nightly, sampled
from tests.workflows.agents import Agents, Serving, call, says, serving, three_tasks

pytestmark = pytest.mark.uses("agents")

AGENT = {"id": "agent", "tool": "agent", "args": {"objective": "Write $first.", "maxCalls": 5}}
FIRST = {"id": "first", "tool": "write_file", "args": {"path": "first.txt", "content": "1"}}


@pytest.fixture
def serve(idle: Plans, make_worker: Callable[..., Any]) -> Serving:
    """A scripted LLM and a worker that uses it."""
    return serving(idle, make_worker)


@pytest.mark.crosses_runs
async def test_an_agents_answer_files_and_calls_are_those_of_its_step(serve: Serving) -> None:
    story = [
        says({"tool_calls": [call("plan_actions", reason="two")]}),
        says({"tasks": ["Write two", "Write again"]}),
        says({"tool_calls": [call("write_file", path="two.txt", content="2")], "task_completed": "two"}),
        says({"tool_calls": [call("write_file", path="first.txt", content="3")], "task_completed": "again"}),
        says({"final_answer": "Both are written."}),
    ]
    steps = [
        FIRST,
        AGENT | {"dependsOn": ["first"], "args": {"objective": "Write two files."}},
        {"id": "end", "tool": "write_file", "args": {"path": "end.txt", "content": "$agent"}},
    ]
    async with serve(story) as agents:
        view = await (await agents.plans.start(steps)).ended()
        texts = [(agents.plans.workspace / f"{name}.txt").read_text() for name in ("first", "two", "end")]
    assert view["status"] == "completed"
    assert texts == ["3", "2", "Both are written."]
    assert step(view, "agent")["result"]["value"] == "Both are written."
    assert view["step_files"]["1"] == ["two.txt", "first.txt"]
    assert [each["tool"] for each in view["step_tool_history"]["1"]] == ["write_file", "write_file"]
    told = [entry["text"] for entry in view["log"] if entry["kind"] == "agent"]
    assert any("1/2 tasks done, now: Write again" in text for text in told)


@pytest.mark.modes("plain")
async def test_a_step_that_wants_no_possible_form_fails_before_its_agent_begins(serve: Serving) -> None:
    args = {"objective": "Count.", "outputSchema": "$form"}
    async with serve([says({"answer": "three"})]) as agents:
        form = work("form", args={"value": {"type": "strng"}})
        view = await agents.plans.run([form, {"id": "count", "tool": "agent", "args": args}])
        assert not agents.llm.play.seen
    result = step(view, "count")["result"]
    assert result["code"] == "INVALID_ARGS"
    assert "args.outputSchema: not a valid JSON Schema: type: 'strng'" in result["error"]


@pytest.mark.crosses_runs
async def test_an_agent_that_used_up_its_limit_fails_its_step(serve: Serving) -> None:
    again = says({"tool_calls": [call("list_directory", path=".")]}, times=0)
    async with serve([again]) as agents:
        steps = [AGENT | {"args": {"objective": "For ever.", "maxCalls": 2}}]
        view = await (await agents.plans.start(steps)).ended()
    result = step(view, "agent")["result"]
    assert (step(view, "agent")["status"], result["code"]) == ("failed", "AGENT_ITERATIONS")
    assert "the limit of 2 LLM requests is used up" in result["error"]


STORY = [
    says({"tool_calls": [call("plan_actions", reason="three")]}),
    says({"tasks": ["Do one", "Do two", "Do three"]}),
    says({"tool_calls": [call("work", name="one")], "task_completed": "one is done"}),
    says({"tool_calls": [call("work", name="two", **WAITS)], "task_completed": "two is done"}),
    says({"tool_calls": [call("work", name="three")], "task_completed": "three is done"}, when={"last": "Task 3:"}),
    says({"final_answer": "All is done."}, when={"last": "ALL 3 tasks"}),
]


async def _until_two(agents: Agents, plan: Started) -> None:
    await plan.until(lambda _: ["start", "two"] in [line[:2] for line in agents.plans.ledger], "the second task")


async def _interrupted(agents: Agents, plan: Started) -> View:
    """Interrupt a plan while a tool call of its agent blocks; the call may finish once the agent is interrupted."""
    await plan.signal("interrupt")
    await Started(plan.client, _agent_of(plan)).until(lambda view: view["stopped"], "the agent is interrupted")
    agents.plans.go()
    return await plan.ended()


def _agent_of(plan: Started) -> str:
    """The child workflow of the step `agent`."""
    return f"agent-{plan.id.removeprefix('plan-')}-agent"


async def _recorded(client: Client, *names: str) -> dict[str, Entry]:
    """The agent history of these runs from the server, once it lists all of them."""
    entries = {entry.agent_id: entry for entry in await verbs.recorded(client) if entry.agent_id in names}
    return entries if len(entries) == len(names) else {}


@pytest.mark.parametrize("stopped_by", ["interrupt", only_nightly("cancel")])
@pytest.mark.crosses_runs
@pytest.mark.on_server("lists")
async def test_a_resumed_plan_goes_on_with_the_agent_of_its_step_and_repeats_none_of_its_calls(
    serve: Serving, stopped_by: str
) -> None:
    async with serve(STORY) as agents:
        client = agents.plans.client
        plan = await agents.plans.start([FIRST, AGENT | {"args": {"objective": "Work."}}])
        await _until_two(agents, plan)
        if stopped_by == "cancel":
            await plan.handle.cancel()
        view = await (_interrupted(agents, plan) if stopped_by == "interrupt" else plan.ended())
        assert (view["status"], step(view, "first")["status"]) == ("cancelled", "completed")
        if stopped_by == "cancel":  # the call that was cancelled is told to the model, which makes it again
            again = {"tool_calls": [call("work", name="two")], "task_completed": "two is done"}
            agents.llm.play.script.exchanges[4:4] = Script.of([says(again, when={"last": "Task 2:"})]).exchanges
        started = await resume.resume(client, plan.id)
        later = Started(client, started.workflow_id)
        view = await later.ended()
        assert not agents.llm.play.unexpected
        splits = [seen for seen in agents.llm.play.seen if "Split the request" in str(seen.body["messages"])]
        old, new = map(_agent_of, (plan, later))
        assert await resume.links(client, new) == Links(resumes=old)
        assert (await resume.links(client, old)).resumed_by == [new]
        entries = await until(lambda: _recorded(client, old, new), "both are listed")
        assert (entries[old].status, entries[old].resumed_by) == ("resumed", new)
        assert (entries[new].resumes, entries[new].plan) == (old, plan.id.removeprefix("plan-"))
        index = (await client.get_workflow_handle(new).describe()).typed_search_attributes
        assert (index.get(PLAN_RESUMES), index.get(PLAN_STATUS)) == (old, "completed")
    assert view["status"] == "completed"
    assert step(view, "agent")["result"]["value"] == "All is done."
    assert [task["status"] for task in step(view, "agent")["tasks"]] == ["done"] * 3
    ends = [line[1] for line in agents.plans.ledger if line[0] == "end"]
    assert ends == ["one", "two", "three"]
    assert len(splits) == 1
    assert view["step_tool_history"]["1"][0]["args"]["name"] == "one"


@pytest.mark.modes("plain")
async def test_a_plan_is_resumed_although_the_agent_of_its_step_cannot_say_how_it_was_left(serve: Serving) -> None:
    async with serve([*STORY[:4], says({"answer": "anew", "confidence": "high"}, times=0)]) as agents:
        client, plan = agents.plans.client, await agents.plans.start([AGENT | {"args": {"objective": "Work."}}])
        await _until_two(agents, plan)
        await _interrupted(agents, plan)
        name = _agent_of(plan)
        await until(lambda: _has_ended(client, name), "the agent has ended")
        unreadable = await client.start_workflow("AgentWorkflow", {}, id=name, task_queue=agents.plans.queue)
        with pytest.raises(WorkflowFailureError):
            await unreadable.result()
        view = await Started(client, (await resume.resume(client, plan.id)).workflow_id).ended()
    assert step(view, "agent")["result"]["value"] == "anew"


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.modes("plain")
async def test_an_agent_that_could_not_begin_leaves_the_one_before_it_to_the_next_run(serve: Serving) -> None:
    async with serve(STORY) as agents:
        client, plan = agents.plans.client, await agents.plans.start([AGENT | {"args": {"objective": "Work."}}])
        await _until_two(agents, plan)
        await _interrupted(agents, plan)
        taken = _agent_of(Started(client, f"{plan.id}-r2"))
        await client.start_workflow("AgentWorkflow", {}, id=taken, task_queue="nobody")
        second = Started(client, (await resume.resume(client, plan.id)).workflow_id)
        assert step(await second.ended(), "agent")["status"] == "failed"
        await terminated(client, taken)
        unreadable = await client.start_workflow("AgentWorkflow", {}, id=taken, task_queue=agents.plans.queue)
        with pytest.raises(WorkflowFailureError):
            await unreadable.result()
        view = await Started(client, (await resume.resume(client, second.id)).workflow_id).ended()
    assert step(view, "agent")["result"]["value"] == "All is done."
    assert [line[1] for line in agents.plans.ledger if line[0] == "end"] == ["one", "two", "three"]


async def _has_ended(client: Client, name: str) -> bool:
    return (await client.get_workflow_handle(name).describe()).close_time is not None


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.crosses_runs
async def test_an_agent_that_is_asked_for_something_else_begins_anew(serve: Serving) -> None:
    other = [says({"answer": "something else", "confidence": "high"}, when={"last": "Do something else."})]
    async with serve([*STORY[:4], *other]) as agents:
        plan = await agents.plans.start([AGENT | {"args": {"objective": "Work."}}])
        await _until_two(agents, plan)
        await _interrupted(agents, plan)
        change = Replacement(step_id="agent", path="args.objective", value="Do something else.")
        started = await resume.rerun(agents.plans.client, plan.id, start_at="agent", changes=[change])
        view = await Started(agents.plans.client, started.workflow_id).ended()
    assert step(view, "agent")["result"]["value"] == "something else"


@pytest.mark.modes("plain")
async def test_the_task_list_of_an_agent_is_the_progress_of_its_step(serve: Serving) -> None:
    async with serve(STORY) as agents:
        plan = await agents.plans.start([AGENT | {"args": {"objective": "Work."}}])
        await _until_two(agents, plan)
        view = await plan.until(lambda view: step(view, "agent").get("tasks", [{}])[0].get("status") == "done", "one")
        assert step(view, "agent")["tasks"] == [
            {"objective": "Do one", "status": "done"},
            {"objective": "Do two", "status": "current"},
            {"objective": "Do three", "status": "open"},
        ]
        text = await plan.handle.query("text")
        assert "[✓] Do one" in text
        assert "Notes: one is done" in text
        assert "[>] Do two" in text
        assert "[ ] Do three" in text
        agents.plans.go()
        view = await plan.ended()
        assert step(view, "agent")["notes"] == "one is done; two is done; three is done; All is done."
        events = await plan.handle.query("events", {"since": 0})
    told = [event["progress"] for event in events if event.get("logs") and "progress" in event]
    assert told == [0, 33, 66, 100]


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.crosses_runs
async def test_a_file_changed_while_an_agent_was_interrupted_is_told_to_its_model(serve: Serving) -> None:
    story = [
        says({"tool_calls": [call("write_file", path="a.txt", content="1"), call("work", name="two", **WAITS)]}),
        says({"answer": "done", "confidence": "high"}),
    ]
    async with serve(story) as agents:
        plan = await agents.plans.start([AGENT | {"args": {"objective": "Work."}}])
        await _until_two(agents, plan)
        await _interrupted(agents, plan)
        (agents.plans.workspace / "a.txt").write_text("by somebody else")
        started = await resume.resume(agents.plans.client, plan.id)
        assert (await Started(agents.plans.client, started.workflow_id).ended())["status"] == "completed"
        last = agents.prompts[-1]
    assert "file 'a.txt' was changed since the earlier run saw it" in last


async def test_a_cancelled_plan_cancels_its_agent(serve: Serving) -> None:
    async with serve([says({"tool_calls": [call("work", name="one", seconds=30)]})]) as agents:
        plan = await agents.plans.start([AGENT | {"args": {"objective": "Work."}}])
        await plan.until(lambda _: agents.plans.ledger, "the agent works")
        await plan.handle.cancel()
        view = await plan.ended()
        child = Started(agents.plans.client, _agent_of(plan))
        ended = await child.ended()
        assert ended["status"] == "cancelled", (ended["stopped"], ended["log"], ended["steps"])
    assert view["status"] == "cancelled"


@pytest.mark.modes("plain")
@pytest.mark.parametrize("seed", sampled(range(20), 2))
async def test_wherever_a_plan_with_an_agent_is_interrupted_no_call_of_the_agent_is_made_twice(
    serve: Serving, seed: int
) -> None:
    chance = random.Random(seed)
    steps = [FIRST, AGENT | {"dependsOn": ["first"], "args": {"objective": "Write three things."}}]
    async with serve(three_tasks(seconds=0.05)) as agents:
        plan = await agents.plans.start(steps)
        for _ in range(3):
            await asyncio.sleep(chance.uniform(0.0, 0.8))
            with suppress(RPCError):  # it had ended
                await plan.signal("interrupt")
            if (await plan.ended())["status"] == "completed":
                break
            plan = Started(plan.client, (await resume.resume(plan.client, plan.id)).workflow_id)
        view = await plan.ended()
        if view["status"] != "completed":
            plan = Started(plan.client, (await resume.resume(plan.client, plan.id)).workflow_id)
            view = await plan.ended()
    assert (view["status"], step(view, "agent")["result"]["value"]) == ("completed", "All written.")
    assert [line[1] for line in agents.plans.ledger if line[0] == "end"] == ["one", "two", "three"]
