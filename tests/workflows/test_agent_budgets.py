"""One LLM budget for a plan and all its agents: stopped at the limit, or extended by a person, whatever happens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from temporalio.client import Client

from plansurvive.client.verbs import resume
from plansurvive.plans.editing.next_run import Replacement
from tests.kit.driving import WAITS, Plans, Started, View, step
from tests.kit.waiting import until
from tests.nightly import only_nightly, sampled
from tests.workflows.agents import Agents, Serving, call, says, serving

pytestmark = pytest.mark.uses("agents", "budget")

LOOKS = says({"tool_calls": [call("list_directory", path=".")]}, times=0)
"""An agent that never comes to an end by itself."""
TOKENS = 300


@pytest.fixture
def serve(idle: Plans, make_worker: Callable[..., Any]) -> Serving:
    """A scripted LLM and a worker that uses it."""
    return serving(idle, make_worker)


def agents_named(*names: str) -> list[dict[str, Any]]:
    """Agent steps that run side by side."""
    return [{"id": name, "tool": "agent", "args": {"objective": f"Work on {name}."}} for name in names]


def costly(delay: float = 0.0) -> dict[str, Any]:
    """The same agent, whose every request costs TOKENS and takes a moment, so that requests overlap."""
    content = {"tool_calls": [call("list_directory", path=".")]}
    return {"reply": {"json": content, "usage": {"prompt": TOKENS - 20, "completion": 20}, "delay": delay}, "times": 0}


def asked(agents: Agents) -> int:
    """LLM requests that reached the model."""
    return len(agents.llm.play.seen)


async def until_asked(agents: Agents, number: int) -> None:
    """So many LLM requests have reached the model. One that was granted counts as spent while it is on its way."""
    await until(lambda: asked(agents) >= number, f"{number} requests have reached the model")
    assert asked(agents) == number


async def until_question(plan: Started) -> dict[str, Any]:
    """The pending question about the budget."""
    view = await plan.until(lambda view: view["pending"], "a person is asked")
    (pending,) = view["pending"]
    return dict(pending)


@pytest.mark.slow
@pytest.mark.in_turn
async def test_two_agents_side_by_side_stop_at_the_limit_of_calls_exactly(serve: Serving) -> None:
    async with serve([LOOKS]) as agents:
        plan = await agents.plans.start(agents_named("a", "b"), budget={"calls": 5, "ask": False})
        view = await plan.ended()
        assert asked(agents) == view["tokens"]["calls"] == 5
        more = [Replacement(step_id="budget", path="calls", value=7)]
        later = Started(plan.client, (await resume.resume(plan.client, plan.id, changes=more)).workflow_id)
        assert (await later.ended())["tokens"]["calls"] == asked(agents) == 5 + 2
    for name in ("a", "b"):
        result = step(view, name)["result"]
        assert result["code"] == "LLM_BUDGET"
        assert "5 of 5 calls of the LLM budget are spent" in result["error"]
    assert any("done so far: " in step(view, name)["result"]["error"] for name in ("a", "b"))
    assert view["status"] == "partial"


@pytest.mark.parametrize("limit", [1_000, only_nightly(1)])
async def test_two_agents_side_by_side_stop_at_the_limit_of_tokens_within_one_call(serve: Serving, limit: int) -> None:
    async with serve([costly(delay=0.1)]) as agents:
        view = await (await agents.plans.start(agents_named("a", "b"), budget={"tokens": limit, "ask": False})).ended()
        spent = asked(agents) * TOKENS
    assert limit <= spent < limit + TOKENS
    assert view["tokens"]["totalTokens"] == spent
    assert {step(view, name)["result"]["code"] for name in ("a", "b")} == {"LLM_BUDGET"}


@pytest.mark.slow
@pytest.mark.in_turn
async def test_two_agents_side_by_side_stop_at_the_limit_of_seconds(serve: Serving) -> None:
    async with serve([costly(delay=0.2)]) as agents:
        plan = await agents.plans.start(agents_named("a", "b"), budget={"seconds": 0.5, "ask": False})
        view = await plan.ended()
    assert view["tokens"]["seconds"] >= 0.5
    assert asked(agents) <= 4
    assert {step(view, name)["result"]["code"] for name in ("a", "b")} == {"LLM_BUDGET"}


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_person_extends_the_budget_of_two_agents_once_for_both_and_then_refuses(serve: Serving) -> None:
    async with serve([LOOKS]) as agents:
        plan = await agents.plans.start(agents_named("a", "b"), budget={"calls": 4})
        question = await until_question(plan)
        assert question["kind"] == "budget"
        assert question["args"]["budget"] == "4 of 4 calls of the LLM budget are spent"
        assert question["args"]["approve"] == "the limits become: calls 4 -> 6"
        await until_asked(agents, 4)
        await plan.handle.execute_update(
            "decide", {"stepId": question["stepId"], "approved": True, "digest": question["digest"], "by": "ann"}
        )
        again = await until(lambda: _other(plan, question["digest"]), "it is asked again")
        await until_asked(agents, 6)
        await plan.deny(again["stepId"], by="ann")
        view = await plan.ended()
        assert asked(agents) == 6
        assert {step(view, name)["result"]["code"] for name in ("a", "b")} == {"LLM_BUDGET"}
        assert view["tokens"]["calls"] == 6
        later = await _resumed(plan.client, plan)
        question = await until_question(later)
        assert question["args"]["approve"] == "the limits become: calls 6 -> 9", "what was denied is asked again"
        assert asked(agents) == 6
        await later.deny(question["stepId"], by="ann")
        await later.ended()


async def _other(plan: Started, digest: str) -> dict[str, Any] | None:
    pending = (await plan.view())["pending"]
    return pending[0] if pending and pending[0]["digest"] != digest else None


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_larger_budget_lets_waiting_agents_continue_and_withdraws_the_question(serve: Serving) -> None:
    done = says({"answer": "done", "confidence": "high"}, times=0)
    looks = [says({"tool_calls": [call("list_directory", path=".")]}) for _ in range(2)]
    async with serve([*looks, done]) as agents:
        plan = await agents.plans.start(agents_named("a", "b"), budget={"calls": 2})
        await until_question(plan)
        edit = {"edits": [{"op": "set", "path": "budget.calls", "value": 4}]}
        await plan.handle.execute_update("edit", edit)
        view = await plan.ended()
        assert asked(agents) == 4
    assert view["status"] == "completed"
    assert [step(view, name)["result"]["value"] for name in ("a", "b")] == ["done", "done"]


async def test_a_budget_set_while_agents_run_counts_from_their_next_request(serve: Serving) -> None:
    looks = says({"tool_calls": [call("work", name="one", **WAITS)]})
    async with serve([looks, LOOKS]) as agents:
        plan = await agents.plans.start(agents_named("a"))
        await plan.until(lambda _: agents.plans.ledger, "the agent works")
        edit = {"edits": [{"op": "set", "path": "budget", "value": {"calls": 3, "ask": False}}]}
        await plan.handle.execute_update("edit", edit)
        agents.plans.go()
        view = await plan.ended()
        assert asked(agents) == 3
    assert step(view, "a")["result"]["code"] == "LLM_BUDGET"


async def test_an_answer_that_is_sent_back_counts_under_the_budget(serve: Serving) -> None:
    async with serve([says({"nonsense": True}, times=0)]) as agents:
        view = await (await agents.plans.start(agents_named("a"), budget={"calls": 2, "ask": False})).ended()
        assert asked(agents) == 2
    assert step(view, "a")["result"]["code"] == "LLM_BUDGET"


@pytest.mark.parametrize("stop", ["cancel", only_nightly("interrupt")])
async def test_a_plan_stopped_while_its_agents_wait_for_the_budget_resumes_with_all_that_was_spent(
    serve: Serving, stop: str
) -> None:
    done = says({"answer": "done", "confidence": "high"}, times=0)
    looks = [says({"tool_calls": [call("list_directory", path=".")]}) for _ in range(2)]
    async with serve([*looks, done]) as agents:
        plan = await agents.plans.start(agents_named("a", "b"), budget={"calls": 2})
        await until_question(plan)
        await plan.until(lambda view: _looks(view) == 2, "both calls were reported")
        await (plan.signal("interrupt") if stop == "interrupt" else plan.handle.cancel())
        view = await plan.ended()
        assert (view["status"], view["pending"], view["tokens"]["calls"]) == ("cancelled", [], 2)
        assert _looks(view) == 2
        later = await _resumed(plan.client, plan)
        question = await until_question(later)
        await later.until(lambda view: _looks(view) == 2, "both agents have told what they did before")
        await later.approve(question["stepId"])
        again = await until(lambda: _other(later, question["digest"]), "half of two is enough for one of them")
        await later.approve(again["stepId"])
        view = await later.ended()
        assert asked(agents) == view["tokens"]["calls"] == 4
    assert view["status"] == "completed"
    assert _looks(view) == 2


def _looks(view: View) -> int:
    """The recorded calls of both agents."""
    return [each["tool"] for calls in view["step_tool_history"].values() for each in calls].count("list_directory")


async def _resumed(client: Client, plan: Started) -> Started:
    return Started(client, (await resume.resume(client, plan.id)).workflow_id)


async def test_a_paused_agent_sends_a_granted_request_only_when_it_is_unpaused(serve: Serving) -> None:
    done = says({"answer": "done", "confidence": "high"}, times=0)
    async with serve([says({"tool_calls": [call("list_directory", path=".")]}), done]) as agents:
        plan = await agents.plans.start(agents_named("a"), budget={"calls": 1})
        question = await until_question(plan)
        agent = Started(plan.client, f"agent-{plan.id.removeprefix('plan-')}-a")
        await agent.signal("pause")
        await agent.until(lambda view: view["status"] == "paused", "it is paused")
        await plan.approve(question["stepId"])
        await plan.until(lambda view: not view["pending"], "the question is answered")
        assert asked(agents) == 1
        await agent.signal("unpause")
        assert (await plan.ended())["status"] == "completed"


async def test_a_terminated_agents_open_request_counts_as_sent(serve: Serving) -> None:
    slow = {"reply": {"json": {"answer": "late", "confidence": "high"}, "delay": 30.0}, "times": 0}
    async with serve([slow]) as agents:
        plan = await agents.plans.start(agents_named("a"), budget={"calls": 9})
        await until(lambda: asked(agents), "the model is asked")
        await plan.client.get_workflow_handle(f"agent-{plan.id.removeprefix('plan-')}-a").terminate("lost")
        view = await plan.ended()
    assert step(view, "a")["status"] == "failed"
    assert view["tokens"]["calls"] == 1


async def test_a_report_of_another_agent_is_refused_and_changes_nothing(serve: Serving) -> None:
    async with serve([says({"tool_calls": [call("work", name="one", **WAITS)]}), LOOKS]) as agents:
        plan = await agents.plans.start(agents_named("a"), budget={"calls": 2, "ask": False})
        await plan.until(lambda _: agents.plans.ledger, "the agent works")
        spent = {"byModel": {"m": {"calls": 1_000, "totalTokens": 10**9}}}
        await plan.signal("agent_progress", {"stepId": "a", "agentId": "agent-x", "spent": spent, "finished": 9})
        await plan.until_logged("refused", "UNKNOWN_AGENT")
        agents.plans.go()
        view = await plan.ended()
        assert asked(agents) == view["tokens"]["calls"] == 2
    assert "m" not in view["tokens"]["byModel"]


async def test_an_answer_that_an_agent_did_not_ask_for_is_refused(serve: Serving) -> None:
    async with serve([says({"tool_calls": [call("work", name="one", **WAITS)]}), LOOKS]) as agents:
        plan = await agents.plans.start(agents_named("a"), budget={"calls": 2, "ask": False})
        await plan.until(lambda _: agents.plans.ledger, "the agent works")
        agent = Started(plan.client, f"agent-{plan.id.removeprefix('plan-')}-a")
        await agent.signal("budget_answer", {"number": 7, "granted": True})
        await agent.until_logged("refused", "NOT_ASKED")
        agents.plans.go()
        await plan.ended()
        assert asked(agents) == 2


@pytest.mark.modes("plain")
async def test_messages_with_senseless_numbers_hold_up_no_agent_under_the_budget(serve: Serving) -> None:
    async with serve([says({"tool_calls": [call("work", name="one", **WAITS)]}), LOOKS]) as agents:
        plan = await agents.plans.start(agents_named("a"), budget={"calls": 3})
        await plan.until(lambda _: agents.plans.ledger, "the agent works")
        agent = f"agent-{plan.id.removeprefix('plan-')}-a"
        most, own = 10**12, {"stepId": "a", "agentId": agent}
        for numbers in (
            {"finished": most}, {"finished": most - 1, "request": most}, {"finished": 1, "request": most},
            {"finished": most * 9}, {"finished": -1}, {"request": "x"}, {"spent": {"seconds": "NaN"}}, {"calls": 7},
            {"finished": 1, "request": 2, "estimate": most},
        ):  # fmt: skip
            await plan.signal("agent_progress", own | numbers)
        asks_on = Started(plan.client, agent)
        for answer in ({"number": most, "granted": True}, {"number": 0, "granted": True}, {"number": "0"}, 7, None):
            await asks_on.signal("budget_answer", answer)
        agents.plans.go()
        question = await until_question(plan)
        await asks_on.signal("budget_answer", {"number": 0, "granted": True})
        await until_asked(agents, 3)
        await plan.deny(question["stepId"])
        view = await plan.ended()
        assert view["tokens"]["calls"] == 3
    assert step(view, "a")["result"]["code"] == "LLM_BUDGET"


@pytest.mark.slow
@pytest.mark.crosses_runs
async def test_of_very_many_calls_in_one_answer_none_is_made_and_of_a_hundred_each_once(serve: Serving) -> None:
    names = [f"n{number}" for number in range(100)]
    many = [call("work", name=name) for name in names]
    story = [says({"tool_calls": [*many, *many]}), says({"tool_calls": many})]
    async with serve([*story, says({"answer": "done", "confidence": "high"})]) as agents:
        view = await (await agents.plans.start(agents_named("a"), budget={"calls": 3, "ask": False})).ended()
    assert (view["status"], view["tokens"]["calls"]) == ("completed", 3)
    assert sorted(line[1] for line in agents.plans.ledger if line[0] == "end") == sorted(names)
    recorded = [each["args"]["name"] for each in view["step_tool_history"]["0"]]
    assert recorded == names


async def test_an_agent_whose_granted_request_fails_lets_the_one_that_waits_behind_it_go_on(serve: Serving) -> None:
    refused = {"reply": {"status": 401, "error": "no", "delay": 0.3}}
    async with serve([refused, says({"answer": "done", "confidence": "high"}, times=0)]) as agents:
        plan = await agents.plans.start(agents_named("a", "b"), budget={"tokens": 5_000, "ask": False})
        view = await plan.ended()
        assert asked(agents) == view["tokens"]["calls"] == 2
    assert sorted(step(view, name)["status"] for name in ("a", "b")) == ["completed", "failed"]


def _agent_log(view: View) -> list[str]:
    return [entry["text"] for entry in view["log"] if entry["kind"] == "budget"]


@pytest.mark.slow
@pytest.mark.in_turn
async def test_the_log_warns_once_before_the_limit(serve: Serving) -> None:
    async with serve([LOOKS]) as agents:
        view = await (await agents.plans.start(agents_named("a"), budget={"calls": 5, "ask": False})).ended()
    assert _agent_log(view)[0] == "4 of 5 calls of the LLM budget are spent"


@pytest.mark.parametrize("attempt", sampled(range(20), 2))
async def test_agents_cancelled_while_they_report_or_wait_for_the_budget_end_at_once(
    serve: Serving, attempt: int
) -> None:
    async with serve([LOOKS]) as agents:
        plan = await agents.plans.start(agents_named("a", "b"), budget={"calls": 2 + attempt})
        await until_question(plan)
        await plan.handle.cancel()
        view = await plan.ended()
    assert (view["status"], view["pending"]) == ("cancelled", [])
    assert view["tokens"]["calls"] == 2 + attempt
