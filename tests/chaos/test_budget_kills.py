"""kill -9 of the worker while agents under one budget ask, are granted, and send their LLM requests.

Every request counts once, whatever died with its worker; no limit is passed, and no tool call is made twice.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from examples.scripted_llm.script import Script
from examples.scripted_llm.server import ScriptedLlm
from plansurvive.client.verbs import resume
from tests.chaos.conftest import KILLS, Chaos
from tests.kit.driving import Started, View
from tests.kit.waiting import until
from tests.workflows.agents import call

TOKENS = 300
AGENTS = [{"id": name, "tool": "agent", "args": {"objective": f"Work on {name}."}} for name in ("a", "b")]


def story(delay: float) -> Script:
    """Each agent works three times, then answers. A model without memory: it counts the results it is shown."""
    exchanges: list[dict[str, Any]] = []
    for name in ("a", "b"):
        for number in (3, 2, 1, 0):
            content: dict[str, Any] = {
                "tool_calls": [call("work", name=f"{name}{number}", value=f"did-{name}{number}")]
            }
            if number == 3:
                content = {"answer": f"{name} is done", "confidence": "high"}
            shown = f"did-{name}{number - 1}" if number else f"Work on {name}."
            usage = {"prompt": TOKENS - 20, "completion": 20}
            reply = {"json": content, "usage": usage, "delay": delay}
            exchanges.append({"reply": reply, "when": shown, "times": 0})
    return Script.of(exchanges)


def keys(llm: ScriptedLlm) -> list[str]:
    """The key of each request that reached the model: the same whenever it is sent again."""
    return [seen.headers["idempotency-key"] for seen in llm.play.seen]


def calls(view: View) -> list[str]:
    """The calls in the plan's record that gave their value.

    Beside them it has attempts that ended with their worker, and the interrupted call of the tool `agent` itself.
    """
    records = [each for part in view["step_tool_history"].values() for each in part]
    return sorted(each["args"]["name"] for each in records if each["result"] == each["args"].get("value"))


def all_is_counted_once(llm: ScriptedLlm, view: View) -> None:
    """The plan's usage is that of the distinct requests, and of no other."""
    number = len(set(keys(llm)))
    assert (view["tokens"]["calls"], view["tokens"]["totalTokens"]) == (number, number * TOKENS)


@pytest.mark.slow
async def test_a_worker_killed_while_budgeted_requests_are_out_and_granted_counts_each_once(chaos: Chaos) -> None:
    with ScriptedLlm(story(delay=2.0)) as llm:
        chaos.worker.environ |= {"OPENAI_BASE_URL": llm.url, "PLANS_MODEL": "demo"}
        await chaos.worker.up()
        plan = await chaos.plans.start(AGENTS, budget={"calls": 4})
        await until(lambda: len(set(keys(llm))) == 2, "both requests are out")
        chaos.worker.kill()
        await chaos.worker.up()
        (question,) = (await plan.until(lambda view: view["pending"], "a person is asked"))["pending"]
        chaos.worker.kill()
        await plan.approve(question["stepId"])  # the grant is under way while there is no worker
        await chaos.worker.up()
        await until(lambda: len(set(keys(llm))) > 4, "a granted request is out")
        chaos.worker.kill()
        await chaos.worker.up()
        (question,) = (await plan.until(lambda view: view["pending"], "a person is asked again"))["pending"]
        assert question["args"]["budget"] == "6 of 6 calls of the LLM budget are spent"
        await until(lambda: len(set(keys(llm))) == 6, "the sixth request is out")
        await plan.approve(question["stepId"])
        view = await plan.ended()
        all_is_counted_once(llm, view)
    assert (view["status"], view["tokens"]["calls"]) == ("completed", 8)
    assert calls(view) == ["a0", "a1", "a2", "b0", "b1", "b2"]
    assert sorted(line[1] for line in chaos.plans.ledger if line[0] == "end") == calls(view)


@pytest.mark.slow
@pytest.mark.parametrize("stop", ["never", "interrupt"])
async def test_a_worker_killed_at_any_moment_of_agents_under_a_budget_loses_and_doubles_nothing(
    chaos: Chaos, stop: str
) -> None:
    with ScriptedLlm(story(delay=1.0)) as llm:  # long enough for the interrupt to come before the end
        chaos.worker.environ |= {"OPENAI_BASE_URL": llm.url, "PLANS_MODEL": "demo"}
        await chaos.worker.up()
        plan = await chaos.plans.start(AGENTS, budget={"calls": 100})
        for number in range(KILLS):
            await asyncio.sleep(chaos.chance.uniform(0.0, 1.5))
            if stop == "interrupt" and number == KILLS // 2:
                await plan.signal("interrupt")
            chaos.worker.kill()
            await chaos.worker.up()
        view = await plan.ended()
        if view["status"] != "completed":
            plan = Started(plan.client, (await resume.resume(plan.client, plan.id)).workflow_id)
            view = await plan.ended()
        all_is_counted_once(llm, view)
    assert view["status"] == "completed"
    assert calls(view) == ["a0", "a1", "a2", "b0", "b1", "b2"]
