"""What a plan knows of a coding agent while it works: the calls of its own tools, its text, what it spends."""

from __future__ import annotations

import pytest

from plansurvive.client import runs
from plansurvive.client.runs import Choice
from plansurvive.plans.errors import Refused
from tests.features.coding_agents.scene import Scene, agent_of, asked, code
from tests.kit.driving import Plans, step
from tests.kit.waiting import until

pytestmark = pytest.mark.uses("agents", "children", "budget")


async def test_the_calls_and_the_text_of_an_agent_are_seen_while_it_works(idle: Plans, scene: Scene) -> None:
    go = idle.workspace / "go"
    broken = {"call": "make test", "status": "failed"}
    push = {"ask": "git push", "yes": [], "no": []}
    scene.script(
        [{"call": "rg cart", "kind": "search"}, broken, {"say": "Looking at the cart."}, {"until": str(go)}, push]
    )
    async with scene.worker():
        plan = await idle.start([code()])
        view = await plan.until(lambda view: len(view["step_tool_history"].get("0", [])) == 2, "its calls are known")
        found, failed = view["step_tool_history"]["0"]
        assert (found["tool"], found["args"]["title"], found["result"]) == (
            "coding_agent.search",
            "rg cart",
            "completed",
        )
        assert (failed["tool"], failed["result"]) == ("coding_agent.execute", "Error: failed")
        assert failed["agent"] == agent_of(plan).id

        async def says() -> bool:
            live = await runs.live(scene.client, plan.id)
            return "Looking at the cart." in (live["code"].line if "code" in live else "")

        await until(says, "its text is the progress of the step")
        go.write_text("")
        await asked(plan)
        await runs.deny(scene.client, plan.id, Choice(step_id="code/p1"))
        view = await plan.ended()
    tools = sorted(each["tool"] for each in view["step_tool_history"]["0"])
    assert tools == ["coding_agent", "coding_agent.execute", "coding_agent.search"]


async def test_a_message_interrupts_an_agent_that_asks_and_it_continues_with_it_though_a_process_dies(
    idle: Plans, scene: Scene
) -> None:
    scene.script([{"ask": "make test", "yes": [], "no": []}], [{"say": "kept"}], dies="session/load")
    async with scene.worker():
        plan = await idle.start([code()])
        agent, _ = await asked(plan)
        with pytest.raises(Refused, match="a coding agent takes the event `message`"):
            await runs.event(scene.client, agent.id, "order.paid", {"id": 7})
        sentence = await runs.event(scene.client, agent.id, "message", "Keep the old name.", by="ann")
        assert sentence.startswith("the agent gets the message")
        view = await plan.ended()
    assert step(view, "code")["result"]["value"]["text"] == "kept"
    assert scene.prompts[1:] == ["Continue the interrupted request.\n\nA message of ann: Keep the old name."]
    assert len(scene.log("session/load")) == 2


async def test_a_message_to_an_agent_that_loads_no_session_is_refused(idle: Plans, scene: Scene) -> None:
    scene.script([{"ask": "make test", "yes": [], "no": []}], loads=False)
    async with scene.worker():
        agent, item = await asked(plan := await idle.start([code()]))
        with pytest.raises(Refused, match="so it takes no messages"):
            await runs.event(scene.client, agent.id, "message", "Keep the old name.", by="ann")
        await agent.deny(item["stepId"], digest=item["digest"])
        await plan.ended()


@pytest.mark.slow
async def test_an_agent_that_uses_up_the_budget_within_a_turn_waits_for_a_person(idle: Plans, scene: Scene) -> None:
    never = {"until": str(idle.workspace / "never")}
    scene.script([{"say": "spending"}, {"tokens": 1_500}, never], [{"tokens": 200}, {"say": "the rest"}])
    async with scene.worker():
        plan = await idle.start([code()], budget={"tokens": 1_000})
        view = await plan.until(lambda view: bool(view["pending"]), "a person is asked")
        await agent_of(plan).until(lambda view: step(view, "call_1")["status"] == "completed", "the turn has ended")
        assert len(scene.log("session/cancel")) == 1
        assert "1,500 of 1,000 tokens" in str(view["pending"][0])
        (question,) = view["pending"]
        await plan.approve(question["stepId"], digest=question["digest"])
        view = await plan.ended()
    assert step(view, "code")["result"]["value"]["text"] == "the rest"
    assert scene.prompts == ["Fix the test.", "Continue the interrupted request."]


async def test_an_agent_whose_budget_is_refused_ends(idle: Plans, scene: Scene) -> None:
    scene.script([{"tokens": 1_500}, {"until": str(idle.workspace / "never")}])
    async with scene.worker():
        view = await (await idle.start([code()], budget={"tokens": 1_000, "ask": False})).ended()
    assert step(view, "code")["result"]["code"] == "LLM_BUDGET", step(view, "code")["result"]
    assert len(scene.log("session/cancel")) == 1


@pytest.mark.slow
async def test_an_agent_that_uses_up_the_cost_within_a_turn_waits_for_a_person(idle: Plans, scene: Scene) -> None:
    never = {"until": str(idle.workspace / "never")}
    scene.script([{"say": "spending"}, {"tokens": 1_500}, never], [{"tokens": 200}, {"say": "the rest"}])
    async with scene.worker():
        plan = await idle.start([code()], budget={"cost": 1})
        view = await plan.until(lambda view: bool(view["pending"]), "a person is asked")
        (question,) = view["pending"]
        assert "1.5 of 1 USD of the LLM budget are spent" in str(question)
        assert "cost 1 -> 2" in str(question)
        await agent_of(plan).until(lambda view: step(view, "call_1")["status"] == "completed", "the turn has ended")
        await plan.approve(question["stepId"], digest=question["digest"])
        view = await plan.ended()
    assert step(view, "code")["result"]["value"]["text"] == "the rest"
    # The second process has begun to count from nothing.
    assert view["tokens"]["cost"] == {"USD": 1.7}
    assert view["tokens"]["costByStep"] == {"code": {"USD": 1.7}}


async def test_a_session_that_a_step_continues_costs_what_is_added_to_it(idle: Plans, scene: Scene) -> None:
    scene.script([{"tokens": 400}], [{"tokens": 1_000}])
    again = {**code("More.", session="{{code.sessionId}}"), "id": "again", "dependsOn": ["code"]}
    async with scene.worker():
        view = await (await idle.start([code(), again])).ended()
    assert view["tokens"]["costByStep"] == {"code": {"USD": 0.4}, "again": {"USD": 0.6}}, view["steps"]
