"""Templates, agents and tools on the page, each action as the command of that name does it."""

from __future__ import annotations

from pathlib import Path

from temporalio.client import Client
from temporalio.worker import Worker

from examples.scripted_llm.script import Script
from examples.scripted_llm.server import ScriptedLlm
from plansurvive.activities.tools.registry import load_tools
from plansurvive.client import runs
from plansurvive.client.cli.app import run
from plansurvive.features.templates.names import hash_of
from plansurvive.runtime.server import Server
from plansurvive.runtime.settings import Settings
from tests.apps.web.page_client import browsing
from tests.apps.web.visiting import Visitor, service_on, working

PLAN = "title: Look\ninputs:\n  where: {type: string, default: .}\nsteps:\n  - {id: look, tool: list_directory}\n"
NEWER = PLAN.replace("{id: look, tool: list_directory}", "{id: look, tool: list_directory, args: {path: sub}}")


async def test_a_template_is_saved_shown_compared_run_and_deleted(
    visitor: Visitor, worker: Worker, environ: dict[str, str], workspace: Path
) -> None:
    form = await visitor.post("/templates/new", {"text": PLAN}, 200)
    assert 'name="where" value="project"' in form
    said = await visitor.post("/templates/save", {"text": PLAN, "name": "look", "description": "Looks around"})
    assert "Saved look@" in said
    assert "Looks around" in await visitor.get("/templates")
    file = workspace / "newer.yaml"
    file.write_text(NEWER)
    assert run(["template", "save", "look", str(file), "--workspace", str(workspace)], environ) == 0
    page = await visitor.get("/templates/look")
    assert "by default" in page
    assert f"@{hash_of(NEWER)[:12]}</span></h1>" in page
    other = hash_of(PLAN)[:12]
    compared = await visitor.get(f"/templates/look?to=look%40{other}")
    assert "args.path" in compared
    assert "+  - {id: look, tool: list_directory, args: {path: sub}}" in compared
    answer = await visitor.send("/start/plan", {"template": f"look@{other}", "do": "start", "input.where": "x"})
    name = answer.headers["location"].split("/")[2]
    assert (await runs.wait(visitor.client, name)).is_completed
    assert (await visitor.view(name)).inputs == {"where": "x"}
    await visitor.post("/templates/look/delete", {"where": "project"})
    assert "No templates yet" in await visitor.get("/templates")


async def test_a_template_that_is_no_plan_is_not_saved(visitor: Visitor, workspace: Path) -> None:
    text = await visitor.post("/templates/save", {"text": "steps: [{id: a}]", "name": "bad"}, 422)
    assert "steps: [{id: a}]" in text
    assert not (workspace / ".plans").exists()


async def test_an_agent_is_started_and_its_run_shown_with_its_tool_calls(
    server: Server, temporal_client: Client, settings: Settings, workspace: Path
) -> None:
    (workspace / "seen.txt").write_text("x")
    call = {"reply": {"tool_calls": [{"tool": "list_directory", "args": {}}]}}
    done = {"reply": {"text": "There is one file: seen.txt"}, "times": 0}
    with ScriptedLlm(Script.of([call, done])) as llm:
        asking = settings.with_flags(openai_base_url=llm.url, model="demo")
        async with working(temporal_client, asking):
            service = service_on(server, asking, temporal_client)
            async with browsing(service) as browser:
                ann = Visitor(service, browser, temporal_client)
                wrong = await ann.post("/agents", {"request": "Look around", "calls": "many"}, 422)
                assert "The limits are numbers" in wrong
                assert "Look around</textarea>" in wrong
                fields = {"request": "Look around", "calls": "5", "tools": "list_directory"}
                answer = await ann.send("/agents", fields)
                assert answer.status_code == 303, answer.text
                url = answer.headers["location"]
                await runs.wait(temporal_client, url.rpartition("/")[2])
                text = await ann.get(url)
                assert 'step-id">list_directory<' in text
                assert "of 5</dd>" in text
                assert url.rpartition("/")[2] in await ann.get("/agents")
                assert "No runs of agents match." in await ann.get("/agents?show=active")
                assert "Rebuilt the history" in await ann.post("/agents/rebuild", {})


async def test_the_tools_are_listed_with_their_arguments(visitor: Visitor) -> None:
    text = await visitor.get("/tools")
    assert all(f'step-id">{name}<' in text for name in load_tools(()))
