"""Templates, schedules, agents and tools on the page, each action as the command of that name does it."""

from __future__ import annotations

from pathlib import Path

import pytest
from temporalio.client import Client
from temporalio.worker import Worker

from examples.scripted_llm.script import Script
from examples.scripted_llm.server import ScriptedLlm
from plansurvive.activities.tools.registry import load_tools
from plansurvive.client import runs
from plansurvive.client.cli.app import run
from plansurvive.runtime.server import Server
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.templates.names import hash_of
from tests.client.web.page_client import browsing
from tests.client.web.visiting import Visitor, service_on, working

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


@pytest.mark.slow
@pytest.mark.sampled
async def test_a_schedule_is_made_shown_changed_triggered_paused_resumed_and_deleted(
    visitor: Visitor, worker: Worker
) -> None:
    name = f"nightly-{visitor.service.settings.task_queue}"
    assert "Run it at set times" in await visitor.post("/schedules/new", {"text": PLAN}, 200)
    fields = {"text": PLAN, "name": name, "do": "create", "timezone": "Europe/Berlin", "overlap": "buffer"}
    refused = await visitor.post("/schedules/new", {**fields, "cron": "7 7"}, 422)
    assert "does not have 5 fields" in refused
    page = await visitor.post("/schedules/new", {**fields, "cron": "0 7 * * mon-fri", "note": "for the morning"})
    assert "at 07:00 on Monday to Friday" in page
    assert "for the morning" in page
    assert name in await visitor.get("/schedules")
    made = await runs.show_schedule(visitor.client, name)
    assert (made.overlap, made.by, made.source, made.title) == ("buffer", "ann", "<pasted>", "Look")
    here = f"/schedules/{name}"
    assert "at 08:00" in await visitor.post(f"{here}/update", {"cron": "0 8 * * *", "timezone": "UTC"})
    assert "Started nightly-" in await visitor.post(f"{here}/trigger", {})
    assert "paused by ann" in await visitor.post(f"{here}/pause", {})
    assert (await runs.show_schedule(visitor.client, name)).paused
    await visitor.post(f"{here}/resume", {"note": "again"})
    assert not (await runs.show_schedule(visitor.client, name)).paused
    made_up = await visitor.post(f"{here}/backfill", {"from": "2026-01-05T00:00", "to": "2026-01-05T23:00", "how": ""})
    assert "1 run to make up for" in made_up
    assert "No schedules yet" in await visitor.post(f"{here}/delete", {}) or name not in await visitor.get("/schedules")


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
                assert "the limits are numbers" in wrong
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
                assert "No such runs" in await ann.get("/agents?show=active")
                assert "Rebuilt the history" in await ann.post("/agents/rebuild", {})


async def test_the_tools_are_listed_with_their_arguments(visitor: Visitor) -> None:
    text = await visitor.get("/tools")
    assert all(f'step-id">{name}<' in text for name in load_tools(()))
