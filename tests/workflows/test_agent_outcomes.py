"""Every tool call of an agent has one true result in the next prompt, however its run was stopped and resumed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from examples.scripted_llm.script import Script
from examples.scripted_llm.server import ScriptedLlm
from plansurvive.activities.tools.registry import load_tools
from plansurvive.client.verbs import resume
from plansurvive.features.agents.model.question import Outcome
from plansurvive.runtime.settings import Settings
from plansurvive.worker import build
from tests.kit.driving import WAITS, Plans, Started, View, step
from tests.kit.waiting import until
from tests.nightly import only_nightly
from tests.workflows.agents import Agents, Serving, call, says, serving
from tests.workflows.transcripts import agent_of, occurrences, prompts, told

pytestmark = pytest.mark.uses("agents")

STEP = {"id": "agent", "tool": "agent", "args": {"objective": "Sign it."}}
ANSWER = says({"answer": "done", "confidence": "high"})
SLOW = {"reply": {"json": {"answer": "too late", "confidence": "high"}, "delay": 4.0}}
SIGN = says({"tool_calls": [call("sign", text="it")]})


@pytest.fixture
def serve(idle: Plans, make_worker: Callable[..., Any]) -> Serving:
    """A scripted LLM and a worker that uses it."""
    return serving(idle, make_worker)


@pytest.fixture(params=["in a plan", only_nightly("alone")])
def start(request: pytest.FixtureRequest) -> Callable[[Agents], Any]:
    """Starts the agent by itself, or as a step of a plan; returns what is interrupted and resumed."""

    async def begin(agents: Agents) -> Started:
        return await (agents.plans.start([STEP]) if request.param == "in a plan" else agents.start("Sign it."))

    return begin


def _agent(started: Started) -> Started:
    return agent_of(started) if started.id.startswith("plan-") else started


async def _asked(started: Started, name: str) -> View:
    """The agent's view when it asks about a call."""
    return await _agent(started).until(
        lambda view: any(each["stepId"] == name for each in view["pending"]), f"{name} waits for approval"
    )


async def _resumed(started: Started) -> Started:
    return Started(started.client, (await resume.resume(started.client, started.id, "bob")).workflow_id)


async def _interrupted(started: Started) -> View:
    await started.signal("interrupt", {"by": "bob"})
    return await started.ended()


async def _results(*runs: Started) -> dict[int, Outcome]:
    """The result of each call: the same whenever it is sent, and sent again only after an answer that was dropped."""
    found = await told([_agent(run) for run in runs])
    assert all(each == results[0] for results in found.values() for each in results)
    return {number: each[0] for number, each in found.items()}


@pytest.mark.crosses_runs
@pytest.mark.parametrize("decision", ["deny", "edit", only_nightly("approve")])
async def test_a_call_that_awaited_approval_asks_again_after_a_resume_and_its_result_is_what_was_decided_then(
    serve: Serving, start: Callable[[Agents], Any], decision: str
) -> None:
    async with serve([SIGN, ANSWER]) as agents:
        first = await start(agents)
        await _asked(first, "call_1")
        await _interrupted(first)
        later = await _resumed(first)
        await _asked(later, "call_1")
        assert len(agents.prompts) == 1  # the model is not asked before the call has ended
        if decision == "deny":
            await _agent(later).deny("call_1", by="ann", comment="not this one")
        else:
            await _agent(later).approve(
                "call_1", by="ann", **({"args": {"text": "that"}} if decision == "edit" else {})
            )
        assert (await later.ended())["status"] == "completed"
        result = (await _results(first, later))[1]
        prompt, ledger = prompts(agents)[-1], agents.plans.ledger
    expected = {"approve": ["signed it"], "deny": [], "edit": ["signed that"]}[decision]
    assert [" ".join(line) for line in ledger] == expected
    assert (result.state, result.by) == ("denied" if decision == "deny" else "done", "ann")
    assert result.asked == ({"text": "it"} if decision == "edit" else None)
    for line in expected or ["User denied approval: not this one"]:
        assert occurrences(prompt, line) == 1
    assert "interrupted by" not in prompt


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_decision_given_before_the_interruption_counts_after_it(
    serve: Serving, start: Callable[[Agents], Any]
) -> None:
    calls = [call("work", name="one", **WAITS), call("sign", text="two"), call("sign", text="three")]
    async with serve([says({"tool_calls": calls}), ANSWER]) as agents:
        first = await start(agents)
        await until(lambda: agents.plans.ledger, "the first call runs")
        await _agent(first).approve("call_2", by="ann", args={"text": "TWO"})
        await _agent(first).deny("call_3", by="ann", comment="enough")
        await first.signal("interrupt", {"by": "bob"})
        await _agent(first).until(lambda view: view["stopped"], "it is interrupted")
        agents.plans.go()
        await first.ended()
        later = await _resumed(first)
        assert (await later.ended())["status"] == "completed"
        results = await _results(first, later)
    assert [line[:2] for line in agents.plans.ledger] == [["start", "one"], ["end", "one"], ["signed", "TWO"]]
    assert [(each.state, each.args, each.by) for each in results.values()] == [
        ("done", {"name": "one", **WAITS}, ""),
        ("done", {"text": "TWO"}, "ann"),
        ("denied", {"text": "three"}, "ann"),
    ]


@pytest.mark.slow
async def test_a_result_stands_once_in_the_prompt_after_an_interruption_of_the_models_request(
    serve: Serving, start: Callable[[Agents], Any]
) -> None:
    async with serve([says({"tool_calls": [call("work", name="one", value="worked")]}), SLOW, ANSWER]) as agents:
        first = await start(agents)
        await until(lambda: len(agents.prompts) == 2, "the model is asked about the result")
        await _interrupted(first)
        later = await _resumed(first)
        assert (await later.ended())["status"] == "completed"
        await _results(first, later)
        assert [occurrences(prompt, "worked") for prompt in prompts(agents)] == [0, 1, 1]


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.parametrize("how", ["cancel", "terminate"])
async def test_a_call_that_ran_when_the_run_was_stopped_is_unknown_and_the_others_are_made(
    serve: Serving, start: Callable[[Agents], Any], how: str
) -> None:
    calls = [call("list_directory", path="."), call("work", name="two", **WAITS), call("sign", text="three")]
    async with serve([says({"tool_calls": calls}), ANSWER]) as agents:
        first = await start(agents)
        await until(lambda: agents.plans.ledger, "the second call runs")
        await _agent(first).until_status("call_1", "completed")
        await _agent(first).approve("call_3", by="ann")
        await _agent(first).until_logged("approved")
        await _stop(first, how)
        later = await _resumed(first)
        agents.plans.go()
        await _agent(later).until(lambda view: view["status"] != "draft", "it has begun")
        view = await later.ended()
        results = await _results(first, later)
        prompt = prompts(agents)[-1]
    assert view["status"] == "completed"
    assert results[1].state == "done"
    assert (results[2].state, results[2].ok) == ("unknown", False)
    assert "it may have happened" in results[2].text
    # a person had approved exactly this call: it is made, whatever became of the one before it
    assert (results[3].state, results[3].text) == ("done", "signed three")
    assert prompt.count("it may have happened") == 1


async def _stop(started: Started, how: str) -> None:
    if how == "cancel":
        await started.handle.cancel()
        await started.ended()
        return
    await _agent(started).handle.terminate("by a person")
    if started.id.startswith("plan-"):
        await started.ended()


@pytest.mark.slow
@pytest.mark.in_turn
async def test_calls_that_had_not_begun_when_the_agent_was_cancelled_ask_again(
    serve: Serving, start: Callable[[Agents], Any]
) -> None:
    calls = [call("sign", text="one", path="1"), call("sign", text="two", path="2")]
    async with serve([says({"tool_calls": calls}), ANSWER]) as agents:
        first = await start(agents)
        await _asked(first, "call_2")
        await _agent(first).approve("call_1", by="ann")
        await _agent(first).until_status("call_1", "completed")
        await _stop(first, "cancel")
        later = await _resumed(first)
        view = await _asked(later, "call_2")
        assert step(view, "call_1")["status"] == "completed"
        await _agent(later).approve("call_2", by="ann")
        assert (await later.ended())["status"] == "completed"
        results = await _results(first, later)
    assert [" ".join(line) for line in agents.plans.ledger] == ["signed one", "signed two"]
    assert [each.text for each in results.values()] == ["signed one", "signed two"]


@pytest.mark.slow
@pytest.mark.in_turn
async def test_results_that_a_limit_kept_from_the_model_are_told_after_the_resume(
    serve: Serving, start: Callable[[Agents], Any]
) -> None:
    story = [says({"tool_calls": [call("work", name="one", value="worked")]}), ANSWER]
    async with serve(story) as agents:
        first = await agents.start("Sign it.", limits={"iterations": 1})
        assert (await first.ended())["agent"]["end"] == "iterations"
        later = await _resumed(first)
        assert (await later.ended())["status"] == "completed"
        results = await _results(first, later)
        assert [occurrences(prompt, "worked") for prompt in prompts(agents)] == [0, 1]
    assert [(each.state, each.text) for each in results.values()] == [("done", "worked")]


@pytest.mark.slow
@pytest.mark.in_turn
async def test_the_task_of_calls_that_end_after_a_resume_is_completed_with_them(serve: Serving) -> None:
    story = [
        says({"tool_calls": [call("plan_actions", reason="one")]}),
        says({"tasks": ["Sign"]}),
        says({"tool_calls": [call("sign", text="it")], "task_completed": "signed"}),
        says({"final_answer": "All done."}, when={"last": "ALL 1 tasks"}),
    ]
    async with serve(story) as agents:
        first = await agents.start("Sign it.")
        await _asked(first, "call_1")
        await _interrupted(first)
        later = await _resumed(first)
        await _asked(later, "call_1")
        await later.approve("call_1")
        view = await later.ended()
    assert (view["status"], view["agent"]["answer"]) == ("completed", "All done.")
    assert not agents.llm.play.unexpected


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_call_whose_tool_the_next_worker_lacks_is_told_as_not_made(
    serve: Serving, idle: Plans, settings: Settings
) -> None:
    async with serve([SIGN]) as agents:
        first = await agents.start("Sign it.")
        await _asked(first, "call_1")
        await _interrupted(first)
    with ScriptedLlm(Script.of([ANSWER])) as llm:
        other = settings.with_flags(openai_base_url=llm.url, model="demo")
        async with build(idle.client, other, load_tools(()), indexed=True):
            later = await _resumed(first)
            assert (await later.ended())["status"] == "completed"
            results = await _results(first, later)
    assert [(each.state, each.text) for each in results.values()] == [
        ("interrupted", "not made: its tool is no longer there")
    ]
