"""Starting on the page: files, templates, pasted texts and requests, as the commands do it; nothing else is read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client
from temporalio.worker import Worker

from examples.scripted_llm.script import Script
from examples.scripted_llm.server import ScriptedLlm
from plansurvive.client import runs
from plansurvive.client.requests.plan_form import Choices, Source, checked, requested
from plansurvive.client.requests.roots import OutsideRoots, Roots
from plansurvive.client.rpc import ask
from plansurvive.runtime.server import Server
from plansurvive.runtime.settings import Settings
from tests.apps.web.page_client import browsing
from tests.apps.web.visiting import LIST, Visitor, service_on, working
from tests.client.cli.command import plan
from tests.kit.driving import terminated
from tests.kit.waiting import until

GREET = """\
title: Greet somebody
inputs:
  name: {type: string, description: Whom to greet}
  times: {type: integer, default: 2}
  loud: {type: boolean, default: false}
steps:
  - id: greet
    tool: write_file
    args: {path: hello.txt, content: "{{inputs.name}} x {{inputs.times}} {{inputs.loud}}"}
"""


async def begun(visitor: Visitor, url: str, fields: dict[str, Any]) -> str:
    """Send a form that starts something; the id of the plan that it leads to."""
    answer = await visitor.send(url, fields)
    assert answer.status_code == 303, answer.text
    return answer.headers["location"].split("/")[2]


async def test_a_file_is_started_with_a_form_from_its_typed_inputs(
    visitor: Visitor, worker: Worker, workspace: Path
) -> None:
    (workspace / "sub").mkdir()
    file = workspace / "sub" / "greet.yaml"
    file.write_text(GREET)
    assert "sub/greet.yaml" in await visitor.get("/start")
    page = await visitor.get(f"/start/plan?file={file}")
    assert "Whom to greet</p>" in page
    assert re.search(r'name="input.times" type="text" value="2"[^>]* inputmode="numeric"', page)
    assert "No step will ask a person" in page
    fields = {"file": str(file), "do": "start", "input.name": "Ann\r\n& co", "input.times": "3", "input.loud": "true"}
    name = await begun(visitor, "/start/plan", {**fields, "id": f"greet-{visitor.service.settings.task_queue}"})
    assert (await runs.wait(visitor.client, name)).is_completed
    assert (workspace / "hello.txt").read_text() == "Ann\n& co x 3 true"
    view = await visitor.view(name)
    assert view.inputs == {"name": "Ann\n& co", "times": 3, "loud": True}
    assert view.workspace == str(workspace)


async def test_inputs_that_do_not_fit_are_told_as_the_command_tells_them(visitor: Visitor, workspace: Path) -> None:
    (workspace / "greet.yaml").write_text(GREET)
    fields = {"file": "greet.yaml", "do": "start", "input.name": "Ann", "input.times": "many"}
    text = await visitor.post("/start/plan", fields, 422)
    assert "BAD_INPUT" in text
    assert ">\nAnn</textarea>" in text
    assert 'value="many"' in text


async def test_a_pasted_plan_is_checked_with_lines_and_then_started(visitor: Visitor, worker: Worker) -> None:
    wrong = "title: Pasted\nsteps:\n  - id: first\n    tool: list_directory\n  - id: second\n    tool: lst_directory\n"
    text = await visitor.post("/start/plan", {"text": wrong, "do": "check"}, 200)
    assert 'href="#line-5"' in text
    assert "UNKNOWN_TOOL" in text
    refused = await visitor.post("/start/plan", {"text": "steps: [", "do": "start"}, 422)
    assert "steps: [" in refused
    right = wrong.replace("lst_", "list_")
    name = await begun(visitor, "/start/plan", {"text": right, "do": "start", "review": "1"})
    view = await visitor.in_review(name)
    assert (view.title, [step.id for step in view.steps]) == ("Pasted", ["first", "second"])
    await terminated(visitor.client, f"plan-{name}")


async def test_a_pasted_plan_counts_as_the_persons_own_with_what_it_waives(visitor: Visitor, worker: Worker) -> None:
    step = {"id": "run", "tool": "run_command", "args": {"command": "true"}, "requiresApproval": False}
    pasted = f"steps: [{step}]".replace("False", "false").replace("'", '"')
    assert "It waives the approval of" in await visitor.post("/start/plan", {"text": pasted, "do": "check"}, 200)
    name = await begun(visitor, "/start/plan", {"text": pasted, "do": "start"})
    assert (await runs.wait(visitor.client, name)).is_completed


async def test_a_request_to_the_llm_leads_to_the_review_of_its_plan_which_waives_nothing(
    server: Server, temporal_client: Client, settings: Settings, workspace: Path
) -> None:
    step = {"id": "run", "tool": "run_command", "args": {"command": "true"}, "requiresApproval": False}
    with ScriptedLlm(Script.of([{"reply": {"json": {"title": "Written", "steps": [step]}}, "times": 0}])) as llm:
        asking = settings.with_flags(openai_base_url=llm.url, model="demo")
        async with working(temporal_client, asking):
            service = service_on(server, asking, temporal_client)
            async with browsing(service) as browser:
                ann = Visitor(service, browser, temporal_client)
                name = await begun(ann, "/start/request", {"request": "run something harmless", "timeout": "1h"})

                async def is_written() -> bool:
                    return (await ann.view(name)).status == "review"

                await until(is_written, "the plan is written")
                assert (await ask(temporal_client, name, "state"))["options"]["timeout"] == 3_600.0
                text = await ann.get(f"/plans/{name}/draft")
                assert "1 step will ask a person" in text
                assert "run something harmless" in text
    await terminated(temporal_client, f"plan-{name}")


async def test_a_document_of_another_system_becomes_a_plan_to_check(visitor: Visitor) -> None:
    document = "name: CI\non: push\njobs:\n  build:\n    runs-on: ubuntu-latest\n    steps:\n      - run: make\n"
    text = await visitor.post("/start/import", {"document": document}, 200)
    assert "Converted from another system's document" in text
    assert "run_command" in text


@pytest.mark.parametrize("path", ["../outside.yaml", "/etc/passwd", "link.yaml", "plans.txt", "\0"])
def test_only_plan_files_below_the_roots_are_read(path: str, settings: Settings, workspace: Path) -> None:
    (workspace.parent / "outside.yaml").write_text(GREET)
    (workspace / "link.yaml").symlink_to(workspace.parent / "outside.yaml")
    (workspace / "plans.txt").write_text(GREET)
    with pytest.raises(OutsideRoots):
        Roots.of(settings).file(path)


def test_roots_are_the_workspace_and_those_that_the_settings_list(settings: Settings, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "b.json").write_text('{"steps": []}')
    roots = Roots.of(settings.with_flags(workspaces=(str(other),)))
    assert roots.paths == (settings.workspace, other)
    assert [each.name for each in roots.files()] == ["b.json"]
    assert roots.workspace(str(other)) == str(other)
    assert roots.workspace(" ") is None
    with pytest.raises(OutsideRoots):
        roots.workspace(str(tmp_path))


def test_hidden_folders_and_files_without_steps_at_the_top_are_not_listed(settings: Settings, workspace: Path) -> None:
    for name in (".plans/a.yaml", "node_modules/a.yaml", "deep/deep/deep/a.yaml"):
        (workspace / name).parent.mkdir(parents=True)
        (workspace / name).write_text(GREET)
    (workspace / "settings.json").write_text('{"x": 1}')
    (workspace / "build.yml").write_text("jobs:\n  build:\n    steps:\n      - run: make\n")
    (workspace / "words.yaml").write_text("replies:\n  - say: |\n      steps: []\n")
    (workspace / "a.yaml").write_text(GREET)
    assert [each.name for each in Roots.of(settings).files()] == ["a.yaml"]


def test_a_plan_file_works_in_its_own_directory_unless_something_names_another(
    settings: Settings, workspace: Path
) -> None:
    (workspace / "sub").mkdir()
    file = workspace / "sub" / "list.yaml"
    file.write_text("steps: [{id: list, tool: list_directory, args: {}}]")
    source, other = Source(file=str(file)), str(workspace)
    unset = settings.model_copy(update={"workspace": None, "workspaces": (str(workspace),)})
    assert checked(source, Choices(), unset).workspace == str(file.parent)
    assert requested(source, Choices(), unset).flags.workspace == str(file.parent)
    assert requested(source, Choices(workspace=other), unset).flags.workspace == other
    assert requested(source, Choices(), settings).flags.workspace is None
    file.write_text("workspace: work\nsteps: [{id: list, tool: list_directory, args: {}}]")
    (file.parent / "work").mkdir()
    assert checked(source, Choices(), unset).workspace == str(file.parent / "work")
    assert requested(source, Choices(), unset).flags.workspace is None


async def test_a_workspace_outside_the_roots_is_refused(visitor: Visitor, tmp_path: Path) -> None:
    fields = {"text": f"steps: [{LIST}]".replace("'", '"'), "do": "start", "workspace": str(tmp_path)}
    assert "OUTSIDE_ROOTS" in await visitor.post("/start/plan", fields, 422)


@pytest.mark.parametrize("typed", ["soon", "0s", "400d", "-1h", "<b>2h"])
async def test_a_time_limit_that_is_none_is_refused_and_kept_in_the_form(visitor: Visitor, typed: str) -> None:
    fields = {"text": f"steps: [{LIST}]".replace("'", '"'), "do": "start", "timeout": typed}
    page = await visitor.post("/start/plan", fields, 422)
    assert "Time limit: " in page
    assert f'value="{typed}"' in page
    assert "Time limit: " in await visitor.post("/start/request", {"request": "x", "timeout": typed}, 422)


async def test_a_plan_started_here_is_the_one_that_the_command_starts(
    visitor: Visitor, worker: Worker, environ: dict[str, str], workspace: Path
) -> None:
    (workspace / "greet.yaml").write_text(GREET)
    options = ["--input", "name=Ann", "--input", "loud=true", "--max-parallel", "3", "--review", "--timeout", "2h"]
    ended = await plan(environ, "start", str(workspace / "greet.yaml"), *options, "--json")
    fields = {"file": "greet.yaml", "do": "start", "input.name": "Ann", "input.times": "", "input.loud": "true"}
    here = await begun(visitor, "/start/plan", {**fields, "maxParallel": "3", "review": "1", "timeout": " 2h "})
    states = [await ask(visitor.client, name, "state") for name in (ended.json["planId"], here)]
    for state in states:
        state["options"].pop("by")
        state["plan"].pop("id")
    assert states[0]["options"] == states[1]["options"]
    assert states[0]["options"]["timeout"] == 7_200.0
    assert states[0]["plan"] == states[1]["plan"]
    for name in (ended.json["planId"], here):
        await terminated(visitor.client, f"plan-{name}")
