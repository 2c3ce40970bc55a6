"""What a plan shows of its agents while they work, and that it is exact when they have ended, however they end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from plansurvive.client.verbs import resume
from tests.kit.driving import WAITS, Plans, Started, View, step
from tests.kit.waiting import until
from tests.nightly import only_nightly
from tests.workflows.agents import Serving, call, says, serving

pytestmark = pytest.mark.uses("agents")

AGENT = {"id": "agent", "tool": "agent", "args": {"objective": "Work."}}
DONE = says({"answer": "done", "confidence": "high"}, times=0)


@pytest.fixture
def serve(idle: Plans, make_worker: Callable[..., Any]) -> Serving:
    """A scripted LLM and a worker that uses it."""
    return serving(idle, make_worker)


def costing(tokens: int, *calls: dict[str, Any]) -> dict[str, Any]:
    """An answer with these tool calls, that costs so many tokens."""
    return {"reply": {"json": {"tool_calls": list(calls)}, "usage": {"prompt": tokens - 10, "completion": 10}}}


def writes(name: str) -> dict[str, Any]:
    return call("write_file", path=f"{name}.txt", content=name)


def calls_of(view: View, index: str = "0") -> list[str]:
    """The tools of a step's calls, in order."""
    return [each["tool"] for each in view["step_tool_history"].get(index, [])]


def _child(plan: Started) -> Started:
    return Started(plan.client, f"agent-{plan.id.removeprefix('plan-')}-agent")


@pytest.mark.crosses_runs
async def test_an_agents_calls_files_and_tokens_are_shown_while_it_works_and_once_when_it_ends(serve: Serving) -> None:
    story = [
        costing(100, writes("a")),
        costing(200, writes("b")),
        costing(400, call("work", name="one", **WAITS)),
        DONE,
    ]
    async with serve(story) as agents:
        plan = await agents.plans.start([AGENT])
        await plan.until(lambda _: agents.plans.ledger, "the third call runs")
        view = await plan.until(lambda view: len(calls_of(view)) == 2, "two calls are shown")
        assert calls_of(view) == ["write_file", "write_file"]
        assert view["step_files"]["0"] == ["a.txt", "b.txt"]
        assert view["tokens"]["totalTokens"] >= 300
        assert list(view["tokens"]["byModel"]) == ["demo"]
        assert view["tokens"]["byStep"] == {"agent": view["tokens"]["totalTokens"]}
        assert "Tools: write_file (2 calls)" in await plan.handle.query("text")
        assert (await plan.handle.query("summary"))["tokens"]["totalTokens"] == view["tokens"]["totalTokens"]
        agents.plans.go()
        view = await plan.ended()
    assert calls_of(view) == ["write_file", "write_file", "work"]
    assert [(each["call"], each["agent"]) for each in view["step_tool_history"]["0"]] == [
        (number, f"agent-{plan.id.removeprefix('plan-')}-agent") for number in (1, 2, 3)
    ]
    assert view["step_files"]["0"] == ["a.txt", "b.txt"]
    assert view["tokens"]["calls"] == 4
    assert view["tokens"]["totalTokens"] > 700


async def test_of_calls_side_by_side_the_finished_ones_are_shown_while_another_runs(serve: Serving) -> None:
    async with serve([costing(100, writes("a"), writes("b"), call("work", name="one", **WAITS)), DONE]) as agents:
        plan = await agents.plans.start([AGENT])
        await plan.until(lambda view: "write_file" in calls_of(view), "a finished call is shown")
        agents.plans.go()
        view = await plan.ended()
    assert calls_of(view) == ["write_file", "write_file", "work"]


async def test_an_agent_by_itself_shows_its_tokens_by_model(serve: Serving) -> None:
    async with serve([costing(100, writes("a")), DONE]) as agents:
        result = await agents.run("Write a.")
    assert result["tokens"]["calls"] == 2
    assert list(result["tokens"]["byModel"]) == ["demo"]
    assert result["tokens"]["totalTokens"] == result["agent"]["usage"]["tokens"]


async def test_requests_that_fail_count_as_calls_of_the_agent_and_of_its_plan(serve: Serving) -> None:
    refused = {"reply": {"status": 400, "text": "no"}, "times": 0}
    async with serve([costing(100, writes("a")), refused]) as agents:
        view = await (await agents.plans.start([AGENT])).ended()
    assert step(view, "agent")["result"]["code"] == "AGENT_FAILED"
    assert view["tokens"]["calls"] == 2
    assert view["tokens"]["totalTokens"] == 100
    assert calls_of(view)[0] == "write_file"


@pytest.mark.parametrize("end", ["cancel", "terminate agent", only_nightly("cancel agent")])
async def test_what_a_stopped_agent_did_is_in_the_plans_record(serve: Serving, end: str) -> None:
    async with serve([costing(100, writes("a")), costing(200, call("work", name="one", **WAITS))]) as agents:
        plan = await agents.plans.start([AGENT])
        await plan.until(lambda _: agents.plans.ledger, "the second call runs")
        await plan.until(lambda view: calls_of(view) == ["write_file"], "the first is shown")
        child = _child(plan)
        if end == "cancel":
            await plan.handle.cancel()
        elif end == "cancel agent":
            await child.handle.cancel()
        else:
            await child.handle.terminate("lost")
        view = await plan.ended()
    assert calls_of(view)[0] == "write_file"
    assert view["step_files"]["0"] == ["a.txt"]
    assert view["tokens"]["totalTokens"] == (100 if end == "terminate agent" else 300)


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_resumed_plan_keeps_the_calls_and_tokens_of_the_agents_before(serve: Serving) -> None:
    story = [costing(100, writes("a")), costing(200, call("work", name="one", **WAITS))]
    async with serve([*story, costing(400, call("work", name="two", seconds=0.0)), DONE]) as agents:
        plan = await agents.plans.start([AGENT])
        await plan.until(lambda _: agents.plans.ledger, "the second call runs")
        await plan.signal("interrupt")
        child = _child(plan)
        await child.until(lambda view: view["stopped"], "the agent is interrupted")
        agents.plans.go()
        before = await plan.ended()
        assert before["tokens"]["totalTokens"] == 300
        later = Started(plan.client, (await resume.resume(plan.client, plan.id)).workflow_id)
        view = await later.until(lambda view: calls_of(view), "the earlier calls are there")
        assert calls_of(view)[:2] == ["write_file", "work"]
        view = await later.ended()
        rest = agents.llm.play.seen[-1]
    assert view["status"] == "completed", rest
    assert [name for name in calls_of(view) if name != "agent"] == ["write_file", "work", "work"]
    assert view["tokens"]["calls"] == 4
    assert view["tokens"]["totalTokens"] >= 700
    (only,) = view["tokens"]["byModel"]
    assert only == "demo"


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_plan_that_was_terminated_learns_on_resume_what_its_agent_had_done(serve: Serving) -> None:
    story = [costing(100, writes("a")), costing(200, writes("b"), call("work", name="one", **WAITS)), DONE]
    async with serve(story) as agents:
        plan = await agents.plans.start([AGENT])
        await plan.until(lambda _: agents.plans.ledger, "the last call runs")
        await plan.handle.terminate("lost")
        child = _child(plan)
        await until(lambda: _has_ended(child), "the agent was cancelled with its plan")
        later = Started(plan.client, (await resume.resume(plan.client, plan.id)).workflow_id)
        view = await later.ended()
    assert view["status"] == "completed"
    assert [name for name in calls_of(view) if name != "agent"] == ["write_file", "write_file", "work"]
    assert view["tokens"]["calls"] == 3
    assert view["step_files"]["0"] == ["a.txt", "b.txt"]


@pytest.mark.parametrize("how", ["interrupt", "cancel", "terminate"])
async def test_calls_of_an_earlier_agent_are_recorded_as_its_own_in_every_later_run(serve: Serving, how: str) -> None:
    deletes = [call("delete_file", path="a.txt"), call("delete_file", path="b.txt")]
    async with serve([says({"tool_calls": [writes("a"), writes("b"), *deletes]}), DONE]) as agents:
        plan = await agents.plans.start([AGENT])
        await plan.until(_asks, "the agent asks")
        if how == "interrupt":
            await plan.signal("interrupt")
        elif how == "cancel":
            await plan.handle.cancel()
        else:
            await plan.handle.terminate("lost")
        await plan.ended()
        # The second run ends as well before anything more is done: its agent has made no call.
        second = Started(plan.client, (await resume.resume(plan.client, plan.id)).workflow_id)
        await second.until(_asks, "it asks again")
        await second.signal("interrupt")
        await second.ended()
        third = Started(plan.client, (await resume.resume(plan.client, second.id)).workflow_id)
        await third.until(_asks, "it asks again")
        for number in (3, 4):
            await _child(third).approve(f"call_{number}")
        view = await third.ended()
    assert view["status"] == "completed"
    name = plan.id.removeprefix("plan-")
    history = view["step_tool_history"]["0"]
    made = sorted((each for each in history if each["tool"] != "agent"), key=lambda each: each["call"])
    assert [(each["call"], each["agent"], each.get("planId")) for each in made] == [
        (1, f"agent-{name}-agent", name), (2, f"agent-{name}-agent", name),
        (3, f"agent-{name}-r3-agent", None), (4, f"agent-{name}-r3-agent", None),
    ]  # fmt: skip


def _asks(view: View) -> bool:
    return len(step(view, "agent").get("agentAsks", {}).get("stepIds", ())) == 2


async def _has_ended(plan: Started) -> bool:
    return (await plan.handle.describe()).close_time is not None


async def test_the_plan_of_an_agent_logs_what_was_decided_about_its_calls_and_by_whom(serve: Serving) -> None:
    calls = [call("run_command", command=f"echo {number}") for number in range(3)]
    async with serve([costing(100, *calls), DONE]) as agents:
        plan = await agents.plans.start([AGENT])
        child = _child(plan)
        await child.until(lambda view: view["pending"], "the first command asks")
        await child.approve("call_1", by="ann", comment="go on")
        await child.until(lambda view: "call_2" in str(view["pending"]), "the second command asks")
        await child.approve("call_2", by="bob", args={"command": "true"})
        await child.until(lambda view: "call_3" in str(view["pending"]), "the third command asks")
        await child.deny("call_3", by="cleo")
        view = await plan.ended()
    told = [each["text"] for each in view["log"] if each["kind"] == "agent"]
    for number, decided in (
        (1, "approved by ann: go on"),
        (2, "approved by bob with changed arguments"),
        (3, "denied by cleo"),
    ):
        rows = [text for text in told if f"step 'call_{number}' {decided}" in text]
        assert len(rows) == 1, told
        assert rows[0].startswith(f"{child.id}: step"), rows


async def test_arguments_that_a_person_replaced_are_recorded_as_they_ran(serve: Serving) -> None:
    async with serve([costing(100, call("run_command", command="false")), DONE]) as agents:
        plan = await agents.plans.start([AGENT])
        child = _child(plan)
        await child.until(lambda view: view["pending"], "the command asks")
        await child.approve("call_1", by="ann", args={"command": "true"})
        view = await plan.ended()
    (recorded,) = view["step_tool_history"]["0"]
    assert recorded["args"] == {"command": "true"}
    assert (recorded["asked"], recorded["changedBy"]) == ({"command": "false"}, "ann")


async def test_a_file_that_an_agent_wrote_and_deleted_is_listed_as_deleted(serve: Serving) -> None:
    delete = call("delete_file", path="a.txt")
    async with serve([costing(100, writes("a")), costing(100, writes("b")), costing(100, delete), DONE]) as agents:
        plan = await agents.plans.start([AGENT], {"approveAll": True})
        view = await plan.ended()
    assert view["step_files"]["0"] == ["b.txt"]
    assert step(view, "agent")["deleted"] == ["a.txt"]


@pytest.mark.slow
@pytest.mark.in_turn
async def test_more_calls_than_are_listed_are_counted(serve: Serving) -> None:
    many = [call("list_directory", path=".") for _ in range(52)]
    async with serve([costing(100, *many), costing(100, *many), DONE]) as agents:
        plan = await agents.plans.start([AGENT])
        view = await plan.ended()
        assert "Tools: list_directory (104 calls)" in await plan.handle.query("text")
    assert len(calls_of(view)) == 100
    assert step(view, "agent")["moreCalls"] == 4


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.crosses_runs
async def test_an_agent_reports_once_in_each_of_its_turns_also_in_a_new_run_of_it(serve: Serving) -> None:
    async with serve([*(costing(100, call("list_directory", path=".")) for _ in range(6)), DONE]) as agents:
        plan = await agents.plans.start([AGENT])
        await plan.ended()
        signals = [
            event for event in await plan.events() if event.HasField("workflow_execution_signaled_event_attributes")
        ]
    assert len(signals) <= 7
