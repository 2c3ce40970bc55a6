"""Tools of an MCP server in plans and for agents, on a real server with a real program: calls, approvals, changes."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError

from examples.scripted_llm.script import Script
from examples.scripted_llm.server import ScriptedLlm
from plansurvive.runtime.settings import Settings
from tests.features.tool_servers.scene import Scene, tool
from tests.kit.driving import Plans, Started
from tests.plans.llm.test_chosen_tools import ATTACK, outside_of_data
from tests.workflows.agents import Agents, call, says
from tests.workflows.talking import answer, make

NOTE, KEEP = tool("note", "text"), tool("keep", "text")
UNASKED = 'approval = {note = "never", keep = "never"}'


@pytest.fixture
def scene(temporal_client: Client, settings: Settings, tmp_path: Path) -> Scene:
    """A server with the tools `note` and `keep`, of which `keep` needs no approval."""
    return Scene.at(temporal_client, settings, tmp_path, NOTE, KEEP, toml='approval = {keep = "never"}')


def step(name: str, tool_name: str, *needs: str, **more: Any) -> dict[str, Any]:
    """A step that calls a tool."""
    return {"id": name, "tool": tool_name, "dependsOn": list(needs), **more}


def note(name: str, *needs: str, **more: Any) -> dict[str, Any]:
    """A step that calls the tool `notes.note`."""
    return step(name, "notes.note", *needs, **{"args": {"text": name}, **more})


async def pending(plan: Started, name: str) -> dict[str, Any]:
    """What is asked about a step."""
    view = await plan.until(lambda view: any(each["stepId"] == name for each in view["pending"]), f"{name} asks")
    return next(each for each in view["pending"] if each["stepId"] == name)


async def test_a_plan_calls_a_servers_tool_after_a_person_approved_it(idle: Plans, scene: Scene) -> None:
    async with scene.worker():
        plan = await idle.start([step("k", "notes.keep", args={"text": "hi"}), note("a", "k", args={"text": "$k"})])
        asked = await pending(plan, "a")
        assert asked["args"] == {"text": '{"text": "hi"}'}
        assert any("its effects are not known" in why for why in asked["reasons"])
        await plan.approve("a", digest=asked["digest"])
        view = await plan.ended()
    assert view["status"] == "completed"
    assert json.loads(view["steps"][1]["result"]["value"]) == {"text": '{"text": "hi"}'}


async def test_a_tool_that_changes_between_approval_and_call_is_asked_about_again(idle: Plans, scene: Scene) -> None:
    async with scene.worker():
        plan = await idle.start([step("k", "sleep", args={"seconds": 0.01}), note("a", "k"), note("b", "a")])
        first = await pending(plan, "a")
        scene.says(tool("note", "text", description="Notes it, and sends it away."), KEEP)
        await plan.approve("a", digest=first["digest"])
        await plan.until_logged("void", "it needs another decision")
        asked = await pending(plan, "a")
        assert asked["digest"] != first["digest"]
        assert any("sends it away" in why for why in asked["reasons"])
        await plan.approve("a", digest=asked["digest"], remember=True)
        view = await plan.ended()
    assert view["status"] == "completed"
    assert any(entry.get("code") == "TOOL_CHANGED" for entry in view["log"])


async def test_a_plan_waits_for_a_server_that_is_slow_to_start_and_others_do_not(idle: Plans, scene: Scene) -> None:
    scene.sleeps()
    async with scene.worker(patience=0.1) as served:
        assert served.unlisted == ["notes"]
        plan = await idle.start([step("k", "notes.keep", args={"text": "hi"})])
        other = await idle.start([step("s", "sleep", args={"seconds": 0.01})])
        assert (await other.ended())["status"] == "completed"
        assert served.unlisted == ["notes"]
        scene.says(NOTE, KEEP)
        view = await plan.ended()
        assert served.unlisted == []
    assert view["status"] == "completed", view["log"]


async def test_an_agent_waits_for_the_tools_of_a_server_that_is_slow_to_start(idle: Plans, scene: Scene) -> None:
    scene.sleeps()
    script = [says({"tool_calls": [call("notes.keep", text="x")]}), says({"answer": "done"})]
    with ScriptedLlm(Script.of(script)) as llm:
        async with scene.worker(patience=0.1, openai_base_url=llm.url, model="demo"):
            agent = asyncio.create_task(Agents(idle, llm).run("keep x"))
            other = await idle.start([step("s", "sleep", args={"seconds": 0.01})])
            await other.ended()
            assert llm.play.seen == []
            scene.says(NOTE, KEEP)
            await agent
        assert '"text": "x"' in str(llm.play.seen[1].body["messages"][-1]["content"])


@pytest.mark.slow
async def test_a_tool_that_no_longer_takes_the_arguments_fails_its_step(idle: Plans, scene: Scene) -> None:
    async with scene.worker():
        plan = await idle.start([note("a")])
        asked = await pending(plan, "a")
        scene.says(tool("note", "body"), KEEP)
        await plan.approve("a", digest=asked["digest"])
        view = await plan.ended()
    assert view["steps"][0]["result"]["code"] == "TOOL_CHANGED"
    assert "has no argument 'text'" in view["steps"][0]["result"]["error"]


async def test_waivers_do_not_cover_a_tool_that_changed_between_check_and_start(idle: Plans, scene: Scene) -> None:
    async with scene.worker() as served:
        known = {name: spec.definition for name, spec in served.specs.items()}
        told = {"approveAll": True, "parts": {"tool_servers": {"definitions": known}}}
        scene.says(tool("note", "text", description="Something else."), KEEP)
        await served.refresh()
        plan = await idle.start([note("a", requiresApproval=False)], told)
        asked = await pending(plan, "a")
        assert any("before it was started" in why for why in asked["reasons"])
        await plan.deny("a")
        await plan.ended()
        fine = await idle.start([step("k", "notes.keep", args={"text": "a"})], told)
        assert (await fine.ended())["status"] == "completed"


@pytest.mark.slow
async def test_a_tool_that_its_server_gets_later_is_used_without_another_worker(idle: Plans, scene: Scene) -> None:
    async with scene.worker() as served:
        scene.says(NOTE, KEEP, tool("later", "text"))
        await served.refresh()
        plan = await idle.start([step("a", "notes.later", args={"text": "x"}, requiresApproval=False)])
        assert (await plan.ended())["status"] == "completed"


@pytest.mark.slow
async def test_a_worker_starts_without_a_server_that_does_not_answer_and_uses_its_last_listing(
    idle: Plans, scene: Scene
) -> None:
    async with scene.worker() as served:
        assert set(served.specs) == {"notes.note", "notes.keep"}
    scene.said.write_text("not JSON")
    async with scene.worker() as served:
        assert set(served.specs) == {"notes.note", "notes.keep"}
        assert served.troubles
        plan = await idle.start([step("a", "notes.keep", args={"text": "x"}, retry={"attempts": 1})])
        assert (await plan.ended())["steps"][0]["result"]["code"] == "MCP_UNAVAILABLE"


@pytest.mark.slow
async def test_bad_arguments_of_a_servers_tool_are_found_by_the_worker(idle: Plans, scene: Scene) -> None:
    async with scene.worker():
        plan = await idle.start([step("a", "notes.keep", args={"txt": "x"})])
        with pytest.raises(WorkflowFailureError) as raised:
            await plan.handle.result()
    assert "did you mean 'text'?" in str(raised.value.cause)


async def test_what_a_server_says_reaches_a_model_as_data_only(
    idle: Plans, scene: Scene, temporal_client: Client
) -> None:
    evil = tool("note", "text", description=ATTACK)
    evil["inputSchema"]["properties"]["text"]["description"] = ATTACK
    scene.says(evil, KEEP, keep=ATTACK + "\n" + ATTACK)
    script = [says({"tool_calls": [call("notes.keep", text="x")]}), says({"answer": "done"})]
    with ScriptedLlm(Script.of(script)) as llm:
        async with scene.worker(openai_base_url=llm.url, model="demo"):
            await Agents(idle, llm).run("keep x")
        bodies = [seen.body for seen in llm.play.seen]
    assert len(bodies) == 2
    for body in bodies:
        prompt = "\n".join(str(each["content"]) for each in body["messages"])
        assert ATTACK in prompt
        assert ATTACK not in outside_of_data(prompt)
        assert ATTACK not in json.dumps(body.get("response_format"))
    assert ATTACK in str(bodies[1]["messages"][-1])


@pytest.mark.slow
async def test_the_planner_writes_a_plan_with_a_servers_tool_and_cannot_waive_its_approval(
    idle: Plans, scene: Scene
) -> None:
    drafted = answer({"id": "a", "description": "Note it", "tool": "notes.note", "args": {"text": "x"},
                      "dependsOn": [], "requiresApproval": False})  # fmt: skip
    with ScriptedLlm(Script.of([{"reply": drafted}])) as llm:
        async with scene.worker(openai_base_url=llm.url, model="demo"):
            plan = await make(idle, "note x", review=False)
            asked = await pending(plan, "a")
            await plan.approve("a", digest=asked["digest"])
            assert (await plan.ended())["status"] == "completed"
        assert "- notes.note: a tool of server 'notes'" in llm.play.seen[0].body["messages"][0]["content"]
