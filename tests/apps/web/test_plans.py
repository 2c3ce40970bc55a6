"""The list of plans: what it shows and finds, and what it says when nothing answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client
from temporalio.worker import Worker

from plansurvive.apps.web.common.rendering import coded
from plansurvive.client import runs
from plansurvive.client.listing import list_plans
from plansurvive.client.runs import Started
from plansurvive.plans.run import Options
from plansurvive.runtime.settings import Settings
from tests.apps.web.page_client import browsing, service_for
from tests.kit.driving import terminated
from tests.kit.waiting import until

Start = Callable[..., Any]
HOSTILE = "<img src=x onerror=alert(1)>\u202e\u200b\"'{{7*7}}"


@pytest.fixture
async def start(temporal_client: Client, queue: str, workspace: Path) -> AsyncIterator[Start]:
    """Start a plan that sleeps, and wait until the server lists it."""
    begun: list[Started] = []

    async def start_plan(title: str, **options: Any) -> Started:
        plan = {"title": title, "steps": [{"id": "nap", "tool": "sleep", "args": {"seconds": 3600}}]}
        given = Options(workspace=str(workspace), **options)
        begun.append(await runs.start(temporal_client, plan, options=given, queue=queue))
        name = begun[-1].plan_id

        async def listed() -> bool:
            return name in [each.plan_id async for each in list_plans(temporal_client, running=True)]

        await until(listed, "the server lists the plan")
        return begun[-1]

    yield start_plan
    for started in begun:
        await terminated(temporal_client, started.workflow_id)


@pytest.mark.slow
async def test_the_list_shows_plans_and_finds_them_by_title_id_and_status(
    settings: Settings, temporal_client: Client, worker: Worker, start: Start
) -> None:
    plan = (await start("Tidy the quarterly numbers")).plan_id
    async with browsing(service_for(settings, temporal_client)) as browser:
        for query in ({}, {"q": "QUARTERLY"}, {"q": plan}, {"show": "running"}, {"q": plan, "status": "running"}):
            text = (await browser.get("/", params=query)).text
            assert f'href="/plans/{plan}"' in text, query
        for query in ({"q": "no such title"}, {"q": plan, "status": "failed"}):
            text = (await browser.get("/", params=query)).text
            assert plan not in text.partition('<div id="plans"')[2].partition("<table")[2], query
            assert "No plan matches." in text


async def test_the_list_shows_those_that_one_has_started_oneself(
    settings: Settings, temporal_client: Client, worker: Worker, start: Start
) -> None:
    mine, other = (await start("Mine", by="Ann")).plan_id, (await start("Of another", by="bob")).plan_id
    async with browsing(service_for(settings, temporal_client)) as browser:
        text = (await browser.get("/", params={"show": "mine"})).text
        assert f'href="/plans/{mine}"' in text
        assert f'href="/plans/{other}"' not in text
        assert "show=mine" in text, "pages of it, and what asks again, are of the same list"


async def test_the_list_shows_how_many_steps_are_done_and_what_is_to_decide(
    settings: Settings, temporal_client: Client, worker: Worker, queue: str, workspace: Path
) -> None:
    quick = {"id": "quick", "tool": "sleep", "args": {"seconds": 0.01}}
    gate = {**quick, "id": "gate", "requiresApproval": True, "dependsOn": ["quick"]}
    options = Options(workspace=str(workspace))
    started = await runs.start(temporal_client, {"steps": [quick, gate]}, options=options, queue=queue)
    async with browsing(service_for(settings, temporal_client)) as browser:

        async def shown() -> bool:
            text = (await browser.get("/", params={"q": started.plan_id})).text
            return "1/2" in text and "1 to decide" in text and "asked <time" in text

        await until(shown, "the list shows it")
    await terminated(temporal_client, started.workflow_id)


async def test_a_refused_plan_says_why_with_code_and_what_to_do(
    settings: Settings, temporal_client: Client, worker: Worker, queue: str, workspace: Path
) -> None:
    steps = [{"id": "list", "tool": "no_such_tool", "args": {}}]
    options = Options(workspace=str(workspace))
    started = await runs.start(temporal_client, {"steps": steps}, options=options, queue=queue)
    async with browsing(service_for(settings, temporal_client)) as browser:

        async def shown() -> str:
            text = (await browser.get(f"/plans/{started.plan_id}")).text
            return text if "The plan was refused" in text else ""

        text = await until(shown, "it is refused")
        assert "Unknown tool: no_such_tool; its worker has no tool of this name: " in text
        assert "plan resume" not in text


async def test_how_a_plan_ended_says_each_error_once(
    settings: Settings, temporal_client: Client, worker: Worker, queue: str, workspace: Path
) -> None:
    read = {"id": "read", "tool": "read_json", "args": {"path": "gone.json"}, "retry": {"attempts": 1}}
    steps = [{"id": "each", "forEach": ["a"], "steps": [read]}]
    options = Options(workspace=str(workspace))
    started = await runs.start(temporal_client, {"steps": steps}, options=options, queue=queue)
    async with browsing(service_for(settings, temporal_client)) as browser:

        async def shown() -> str:
            text = (await browser.get(f"/plans/{started.plan_id}")).text
            return text if "How it ended" in text else ""

        card = (await until(shown, "it has ended")).partition("How it ended")[2].partition("</section>")[0]
        assert card.count("does not exist") == 1, card
        assert "each[0].read" in card


async def test_how_a_plan_ended_names_what_failed_in_its_rollback_and_its_finally(
    settings: Settings, temporal_client: Client, worker: Worker, queue: str, workspace: Path
) -> None:
    def read(name: str) -> dict[str, Any]:
        return {"tool": "read_json", "args": {"path": f"{name}.json"}, "retry": {"attempts": 1}}

    made = {"id": "made", "tool": "write_file", "args": {"path": "a.txt", "content": "1"}}
    made["undo"] = {"steps": [{"id": "back", **read("undone")}]}
    steps = [made, {"id": "bad", **read("gone"), "dependsOn": ["made"]}]
    plan = {"steps": steps, "rollback": True, "finally": [{"id": "report", **read("reported")}]}
    options = Options(workspace=str(workspace))
    started = await runs.start(temporal_client, plan, options=options, queue=queue)
    async with browsing(service_for(settings, temporal_client)) as browser:

        async def shown() -> str:
            text = (await browser.get(f"/plans/{started.plan_id}")).text
            return text if "How it ended" in text else ""

        card = (await until(shown, "it has ended")).partition("How it ended")[2].partition("</section>")[0]
        for name, path in {"bad": "gone", "made": "undone", "finally.report": "reported"}.items():
            row = next(each for each in card.split("<li>") if f"{path}.json" in each)
            assert f"{name} " in row.replace("</a>", " "), row
        assert "undo failed" in card
        assert (await browser.get(f"/plans/{started.plan_id}/steps/finally.report")).status_code == 200


@pytest.mark.slow
async def test_the_list_says_when_a_plan_must_have_ended(
    settings: Settings, temporal_client: Client, worker: Worker, start: Start
) -> None:
    timed = (await start("Timed", timeout=7_200.0)).plan_id
    untimed = (await start("Untimed")).plan_id
    async with browsing(service_for(settings, temporal_client)) as browser:

        async def said(name: str) -> bool:
            return "ends by <time" in (await browser.get("/", params={"q": name})).text

        await until(lambda: said(timed), "the plan has begun, and answers")
        assert "ends by" not in (await browser.get("/", params={"q": untimed})).text
        edits: dict[str, Any] = {"edits": [{"op": "set", "path": "timeout", "value": 600.0}]}
        await temporal_client.get_workflow_handle(f"plan-{untimed}").execute_update("edit", edits)
        await until(lambda: said(untimed), "the server's index knows of the edit")


async def test_a_title_written_by_an_attacker_is_shown_as_text_with_its_hidden_characters(
    settings: Settings, temporal_client: Client, worker: Worker, start: Start
) -> None:
    plan = (await start(HOSTILE)).plan_id
    async with browsing(service_for(settings, temporal_client)) as browser:
        text = (await browser.get("/", params={"q": plan})).text
        assert "<img" not in text
        assert "&lt;img src=x onerror=alert(1)&gt;\\u202e\\u200b" in text
        assert "\u202e" not in text
        assert "{{7*7}}" in text


async def test_without_a_server_the_page_says_what_to_do_and_asks_again_by_itself(
    settings: Settings, temporal_client: Client
) -> None:
    absent = settings.with_flags(temporal={"TEMPORAL_ADDRESS": "127.0.0.1:1"})
    service = service_for(absent, None)
    async with browsing(service) as browser:
        answer = await browser.get("/?q=a%26b")
        assert answer.status_code == 503
        assert "No Temporal server could be reached at 127.0.0.1:1" in answer.text
        assert 'hx-get="/?q=a%26b" hx-trigger="every' in answer.text
        again = await browser.get("/", headers={"Accept": "application/json"})
        assert again.json()["error"]["code"] == "NOT_CONNECTED"
        service.connection = service_for(settings, temporal_client).connection
        assert (await browser.get("/")).status_code == 200


async def test_unknown_pages_are_told_in_words(settings: Settings, temporal_client: Client) -> None:
    async with browsing(service_for(settings, temporal_client)) as browser:
        answer = await browser.get("/no/such/page")
        assert answer.status_code == 404
        assert "There is no such page." in answer.text


def test_what_a_sentence_has_between_backticks_is_code_and_everything_else_is_text() -> None:
    assert coded("list it in `owns:`, or read it") == "list it in <code>owns:</code>, or read it"
    assert coded("`<b>`\u202e") == "<code>&lt;b&gt;</code>\\u202e"
    assert coded("it's a ` of its own") == "it&#39;s a ` of its own"
