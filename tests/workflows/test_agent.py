"""Agents on the real server, with a scripted model: they work through every task, and end in a state that says how."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ApplicationError

from plansurvive.plans.views.models.agents import MAX_NUDGES
from tests.kit.driving import Plans, statuses
from tests.workflows.agents import Serving, call, says, serving

pytestmark = pytest.mark.uses("agents")

WEBAPP = (
    "Build a web application: create the project structure, set up the database, implement the API, write the tests."
)
OBJECTIVES = ["Create the project structure", "Set up the database", "Implement the API", "Write the tests"]
CHOOSES = says({"tool_calls": [call("plan_actions", reason="four objectives")]})


@pytest.fixture
def serve(idle: Plans, make_worker: Callable[..., Any]) -> Serving:
    """A scripted LLM and a worker that uses it."""
    return serving(idle, make_worker)


def _writes(name: str, done: str = "") -> dict[str, Any]:
    return says({"tool_calls": [call("write_file", path=name, content=name)], "task_completed": done or None})


@pytest.mark.crosses_runs
async def test_an_agent_finishes_all_four_objectives_although_the_model_wants_to_stop_after_the_first(
    serve: Serving,
) -> None:
    story = [
        CHOOSES,
        says({"tasks": OBJECTIVES}),
        says({"reasoning": "begin", "tool_calls": [call("create_directory", path="app")]}),
        says({"task_completed": "The structure is there."}),
        says({"final_answer": "Done, the structure is there."}),
        _writes("app/db.sql", "The database is set up."),
        says({"final_answer": "Everything is done."}),
        _writes("app/api.py", "The API is there."),
        _writes("app/test_api.py"),
        says({"task_completed": "Tests written."}),
        says({"final_answer": "The web application is built."}),
    ]
    async with serve(story) as agents:
        view = await agents.run(WEBAPP)
        files = {path.name for path in (agents.plans.workspace / "app").iterdir()}
    agent = view["agent"]
    assert (view["status"], agent["end"], agent["answer"]) == (
        "completed",
        "completed",
        "The web application is built.",
    )
    assert [task["objective"] for task in agent["tasks"]] == OBJECTIVES
    assert {task["status"] for task in agent["tasks"]} == {"done"}
    assert files == {"db.sql", "api.py", "test_api.py"}
    refused = [prompt for prompt in agents.prompts if "final_answer was not accepted" in prompt]
    assert len(refused) == 2
    assert "3 of 4 tasks remain" in refused[0]
    assert not agents.llm.play.unexpected
    assert not agents.llm.play.left


async def test_a_simple_request_is_answered_after_its_tool_calls(serve: Serving) -> None:
    story = [
        says({"tool_calls": [call("read_file", path="a.txt"), call("list_directory", path=".")]}),
        says({"answer": "It says hello.", "confidence": "high"}),
    ]
    async with serve(story) as agents:
        (agents.plans.workspace / "a.txt").write_text("hello $step_1 {{x}}")
        started = await agents.start("What is in a.txt?")
        view = await started.ended()
        scheduled = await started.scheduled()
    assert (view["agent"]["answer"], view["agent"]["confidence"]) == ("It says hello.", "high")
    assert statuses(view) == {"call_1": "completed", "call_2": "completed"}
    assert 'read_file {"path": "a.txt"} [SUCCESS]: hello $step_1 {{x}}' in agents.prompts[1]
    types = [each.activity_type.name for each in scheduled.values()]
    assert [name for name in types if name in ("ask_llm", "read_file", "list_directory")] != []
    assert "read_file" in types


async def test_what_looks_like_a_reference_is_written_as_it_stands(serve: Serving) -> None:
    text = "$call_1 costs {{call_1}} and $$5"
    story = [
        says({"tool_calls": [call("write_file", path="a.txt", content="first")]}),
        says({"tool_calls": [call("write_file", path="b.txt", content=text)]}),
        says({"answer": "written", "confidence": "low"}),
    ]
    async with serve(story) as agents:
        view = await agents.run("Write it.")
        assert (agents.plans.workspace / "b.txt").read_text() == text
    assert view["status"] == "completed"


@pytest.mark.crosses_runs
async def test_a_command_waits_for_approval_and_a_denial_is_told_to_the_model(serve: Serving) -> None:
    story = [
        says({"tool_calls": [call("run_command", command="echo one > one.txt")]}),
        says({"tool_calls": [call("run_command", command="echo two > two.txt")]}),
        says({"answer": "one only", "confidence": "high"}),
    ]
    async with serve(story) as agents:
        agent = await agents.start("Run two commands.")
        await agent.until(lambda view: view["pending"], "a question")
        await agent.approve("call_1", by="ann")
        await agent.until(lambda view: view["pending"] and view["pending"][0]["stepId"] == "call_2", "the second")
        await agent.deny("call_2", by="ann", comment="one is enough")
        view = await agent.ended()
        assert (agents.plans.workspace / "one.txt").exists()
        assert not (agents.plans.workspace / "two.txt").exists()
    assert view["status"] == "completed"
    told = (
        'run_command {"command": "echo two > two.txt"} (denied by "ann") [ERROR]: User denied approval: one is enough'
    )
    assert told in agents.prompts[2]


async def test_calls_on_one_path_follow_each_other_and_others_do_not_wait(serve: Serving) -> None:
    calls = [
        call("write_file", path="a.txt", content="1"),
        call("edit_file", path="./a.txt", oldText="1", newText="2"),
        call("write_file", path="b.txt", content="1"),
    ]
    async with serve([says({"tool_calls": calls}), says({"answer": "ok", "confidence": "high"})]) as agents:
        view = await agents.run("Write.")
        assert (agents.plans.workspace / "a.txt").read_text() == "2"
    assert [step["dependsOn"] for step in view["steps"]] == [[], ["call_1"], []]


async def test_a_long_result_is_cut_and_the_model_reads_on(serve: Serving) -> None:
    story = [
        says({"tool_calls": [call("read_file", path="long.txt")]}),
        says({"tool_calls": [{"tool": "read_result", "args": {"call": 1, "offset": 4_000}}]}),
        says({"answer": "read", "confidence": "high"}),
    ]
    async with serve(story) as agents:
        (agents.plans.workspace / "long.txt").write_text("x" * 30_000 + "THE MIDDLE" + "y" * 10)
        (agents.plans.workspace / "long.txt").write_text("x" * 5_000 + "THE MIDDLE" + "y" * 30_000)
        view = await agents.run("Read it.")
    assert view["status"] == "completed"
    assert "THE MIDDLE" not in agents.prompts[1]
    assert '{"call": 1, "offset": 4000}' in agents.prompts[1]
    assert "THE MIDDLE" in agents.prompts[2]


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("limits", "end"),
    [({"iterations": 2}, "iterations"), ({"tokens": 10}, "tokens"), ({"seconds": 0.000001}, "timeout")],
)
@pytest.mark.crosses_runs
async def test_a_limit_ends_a_run_in_a_state_that_says_so(serve: Serving, limits: dict[str, Any], end: str) -> None:
    again = says({"tool_calls": [call("list_directory", path=".")]}, times=0)
    async with serve([again]) as agents:
        view = await agents.run("For ever.", limits=limits)
    assert (view["agent"]["end"], view["status"]) == (end, "partial")
    assert "used up" in view["stopped"]


async def test_a_model_that_does_nothing_is_given_up(serve: Serving) -> None:
    async with serve([says({"answer": ""}, times=0)]) as agents:
        view = await agents.run("Do something.")
    assert (view["agent"]["end"], view["agent"]["usage"]["iterations"]) == ("stalled", 4)


async def test_an_answer_that_cannot_be_used_is_sent_back(serve: Serving) -> None:
    story = [
        says({"tool_calls": [call("read_fil", path="a")]}),
        says({"answer": "sorry", "confidence": "low"}, when="Unknown tool: read_fil"),
    ]
    async with serve(story) as agents:
        view = await agents.run("Read.")
    assert view["agent"]["answer"] == "sorry"


async def test_a_final_answer_must_be_of_the_form_that_was_ordered(serve: Serving) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    story = [says({"answer": "three", "confidence": "low"}), says({"answer": json.dumps({"n": 3})})]
    async with serve(story) as agents:
        started = await agents.start("Count.", outputSchema=schema)
        result = await started.handle.result()
    assert result["value"] == {"n": 3}


@pytest.mark.modes("plain")
async def test_a_form_that_is_no_schema_is_refused_before_anything_is_asked(serve: Serving) -> None:
    async with serve([says({"answer": "three"})]) as agents:
        started = await agents.start("Count.", outputSchema={"type": "strng"})
        with pytest.raises(WorkflowFailureError) as failed:
            await started.handle.result()
        assert not agents.llm.play.seen
    assert isinstance(failed.value.cause, ApplicationError)
    assert "'strng'" in str(failed.value.cause.details)


@pytest.mark.modes("plain")
@pytest.mark.parametrize(
    ("schema", "answer"), [({"$ref": "#"}, "1"), ({}, '"\\ud83d"')], ids=["an endless form", "half a character"]
)
async def test_an_answer_that_no_form_can_take_ends_the_agent_nevertheless(
    serve: Serving, schema: dict[str, Any], answer: str
) -> None:
    async with serve([says({"answer": answer}, times=0)]) as agents:
        view = await agents.run("Count.", outputSchema={"title": "any", **schema})
        assert len(agents.llm.play.seen) == MAX_NUDGES + 1
    assert view["agent"]["end"] == "stalled"
    assert "final answer: " in view["stopped"]


async def test_an_agent_without_a_model_fails_with_the_reason(idle: Plans, make_worker: Callable[..., Any]) -> None:
    from tests.workflows.agents import Agents

    async with make_worker(openai_base_url="http://127.0.0.1:9", model="demo"):
        agent = await Agents(idle, None).start("Hello")  # type: ignore[arg-type]
        await agent.until(lambda view: view["status"] == "running", "it runs")
        await agent.signal("interrupt")
        await agent.handle.cancel()
        view = await agent.ended()
    assert view["status"] == "cancelled"
