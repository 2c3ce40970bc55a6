"""Steps done by an agent: a child workflow whose answer, files and tool calls are the step's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from client import resuming
from tests.driving import Plans, Started, step
from tests.workflows.agents import Serving, call, says, serving

AGENT = {"id": "agent", "tool": "agent", "args": {"objective": "Write $first.", "maxCalls": 5}}
FIRST = {"id": "first", "tool": "write_file", "args": {"path": "first.txt", "content": "1"}}


@pytest.fixture
def serve(idle: Plans, make_worker: Callable[..., Any]) -> Serving:
    """A scripted model and a worker that asks it."""
    return serving(idle, make_worker)


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


async def test_an_agent_that_used_up_its_limit_fails_its_step(serve: Serving) -> None:
    again = says({"tool_calls": [call("list_directory", path=".")]}, times=0)
    async with serve([again]) as agents:
        steps = [AGENT | {"args": {"objective": "For ever.", "maxCalls": 2}}]
        view = await (await agents.plans.start(steps)).ended()
    result = step(view, "agent")["result"]
    assert (step(view, "agent")["status"], result["code"]) == ("failed", "AGENT_ITERATIONS")
    assert "used up its 2 model calls" in result["error"]


async def test_an_interrupted_plan_stops_its_agent_and_does_the_step_again_when_resumed(serve: Serving) -> None:
    story = [
        says({"tool_calls": [call("work", name="one", seconds=2.0)]}),
        says({"tool_calls": [call("work", name="two")]}),
        says({"answer": "done", "confidence": "high"}),
    ]
    async with serve(story) as agents:
        plan = await agents.plans.start([FIRST, AGENT | {"args": {"objective": "Work."}}])
        await plan.until(lambda _: agents.plans.ledger, "the agent works")
        await plan.signal("interrupt")
        view = await plan.ended()
        assert (view["status"], step(view, "agent")["result"]["code"]) == ("cancelled", "AGENT_INTERRUPTED")
        assert step(view, "first")["status"] == "completed"
        started = await resuming.resume(agents.plans.client, plan.id)
        view = await Started(agents.plans.client, started.workflow_id).ended()
    assert view["status"] == "completed"
    assert step(view, "agent")["result"]["value"] == "done"


async def test_a_cancelled_plan_cancels_its_agent(serve: Serving) -> None:
    async with serve([says({"tool_calls": [call("work", name="one", seconds=30)]})]) as agents:
        plan = await agents.plans.start([AGENT | {"args": {"objective": "Work."}}])
        await plan.until(lambda _: agents.plans.ledger, "the agent works")
        await plan.handle.cancel()
        view = await plan.ended()
        child = Started(agents.plans.client, f"agent-{plan.id.removeprefix('plan-')}-agent")
        ended = await child.ended()
        assert ended["status"] == "cancelled", (ended["stopped"], ended["log"], ended["steps"])
    assert view["status"] == "cancelled"
