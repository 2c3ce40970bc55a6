"""A request split into tasks as an agent would, as a plan: reviewed, edited, then executed task by task."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.kit.driving import Plans, Started, statuses, step
from tests.workflows.agents import Agents, Serving, call, says, serving

pytestmark = pytest.mark.uses("planning")

TASKS = says({"tasks": ["Write one", "Write two", "Write three"]}, when={"schema": "tasks"})


@pytest.fixture
def serve(idle: Plans, make_worker: Callable[..., Any]) -> Serving:
    """A scripted LLM and a worker that uses it."""
    return serving(idle, make_worker)


def _agent(name: str) -> list[dict[str, Any]]:
    """LLM answers of an agent that writes a file and reports it."""
    write = {"tool_calls": [call("write_file", path=f"{name}.txt", content=name)]}
    return [says(write, when={"last": f"Write {name}"}), says({"answer": f"{name} is written", "confidence": "high"})]


async def _split(agents: Agents, review: bool, **args: Any) -> Started:
    options = {"workspace": str(agents.plans.workspace), "review": review, "split": args, **agents.plans.options}
    return await agents.plans.start_with({"request": "Write three files.", "plan": {}, "options": options})


@pytest.mark.crosses_runs
async def test_the_tasks_of_a_request_wait_in_review_and_then_agents_do_them_in_order(serve: Serving) -> None:
    async with serve([TASKS, *_agent("one"), *_agent("three")]) as agents:
        plan = await _split(agents, review=True, maxCalls=5, tools=["write_file"])
        view = await plan.until(lambda view: view["status"] == "review", "review")
        assert [each["description"] for each in view["steps"]] == ["Write one", "Write two", "Write three"]
        assert view["steps"][2]["dependsOn"] == ["task_1", "task_2"]
        assert view["steps"][0]["args"] == {"objective": "Write one", "maxCalls": 5, "tools": ["write_file"]}
        assert (view["title"], view["problems"]) == ("Write three files.", [])
        assert not list(agents.plans.workspace.iterdir())
        await plan.handle.execute_update("edit", {"edits": [{"op": "skip", "stepId": "task_2"}]})
        await plan.signal("begin", {"by": "ann"})
        view = await plan.ended()
        files = sorted(path.name for path in agents.plans.workspace.iterdir())
        assert not agents.llm.play.unexpected
        asked = str(agents.llm.play.seen[0].body["messages"])
    assert statuses(view) == {"task_1": "completed", "task_2": "skipped", "task_3": "completed"}
    assert (view["status"], files) == ("completed", ["one.txt", "three.txt"])
    assert step(view, "task_3")["result"]["value"] == "three is written"
    assert "Write three files." in asked
    assert "write_file" in asked
    assert "delete_file" not in asked


async def test_without_review_it_begins_at_once(serve: Serving) -> None:
    async with serve([TASKS, *_agent("one"), *_agent("two"), *_agent("three")]) as agents:
        view = await (await _split(agents, review=False)).ended()
    assert (view["status"], set(statuses(view).values())) == ("completed", {"completed"})


@pytest.mark.modes("plain")
async def test_a_model_that_writes_no_task_list_leaves_a_draft_that_says_why(serve: Serving) -> None:
    async with serve([says({"tasks": []}, times=0)]) as agents:
        plan = await _split(agents, review=False)
        view = await plan.until(lambda view: view["status"] == "review", "review")
        assert [each["code"] for each in view["problems"]] == ["LLM_BAD_ANSWER"]
        assert "tasks: must have 1 to 50 entries" in view["problems"][0]["message"]
        await plan.signal("interrupt")
        await plan.ended()


@pytest.mark.parametrize("tools", [5, "write_file", {"write_file": True}])
@pytest.mark.modes("plain")
async def test_tools_that_are_no_list_are_a_problem_of_the_draft(serve: Serving, tools: Any) -> None:
    async with serve([TASKS]) as agents:
        plan = await _split(agents, review=False, tools=tools)
        view = await plan.until(lambda view: view["status"] == "review", "review")
        assert {each["code"] for each in view["problems"]} == {"INVALID_ARGS"}
        await plan.signal("interrupt")
        await plan.ended()
