"""Every page that is not about a plan: axe-core finds nothing, on a phone and a desk, in light and dark. And no page of
the application is left out, here or in `plans/test_axe.py`.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Error, Page
from starlette.routing import Route
from temporalio.client import Client
from temporalio.worker import Worker

from plansurvive.apps.web.app import application
from plansurvive.apps.web.decisions.routes import decision_url
from plansurvive.client import runs
from plansurvive.runtime.links import Links
from plansurvive.runtime.server import Server
from plansurvive.runtime.settings import Settings
from tests.apps.web.browser import PHONE, everywhere, opened, served_at
from tests.apps.web.decisions.test_decide import GATE
from tests.apps.web.drafts.test_in_chromium import PLAN, page_of
from tests.apps.web.page_client import SECRET, service_for
from tests.apps.web.plans.test_axe import pages_about
from tests.apps.web.visiting import Start
from tests.apps.web.visiting import start as start
from tests.apps.web.visiting import start_unserved as start_unserved
from tests.kit.waiting import until

PAGES: dict[str, list[str]] = {
    "/": ["/", "/?show=running", "/?q=nothing+has+this+name"],
    "/inbox": ["/inbox"],
    "/plans/{plan_id}/steps/{step_id:path}/decide": ["DECIDE"],
    "/decide/{token}": ["LINK", "/decide/not-a-link"],
    "/plans/{plan_id}/undo": ["UNDO"],
    "/plans/{plan_id}": ["/plans/there-is-none"],
    "/start": ["/start", "/start?find=greet"],
    "/start/plan": ["/start/plan?file=greet.yaml"],
    "/templates": ["/templates"],
    "/templates/{name}": ["/templates/greet", "/templates/none"],
    "/schedules": ["/schedules"],
    "/schedules/new": ["/schedules/new?file=greet.yaml"],
    "/schedules/{name}": ["SCHEDULE"],
    "/agents": ["/agents"],
    "/agents/{agent_id}": ["/agents/agent-none"],
    "/tools": ["/tools"],
    "/policy": ["/policy"],
    "/limits": ["/limits"],
    "/connect": ["/connect"],
    "/login": ["/login"],
    "/login/callback": ["/login/callback"],
    "/logged-out": ["/logged-out"],
}
"""The addresses that are opened, by route; those in capitals are made by the test."""
POSTED: dict[str, dict[str, str]] = {
    "/connect": {},
    "/start/plan": {"file": "greet.yaml", "do": "forecast", "input.name": ""},
    "/start/import": {"text": "on: push\njobs: {a: {runs-on: x, steps: [{run: make}, {uses: 'some/action@v1'}]}}"},
    "/templates/new": {"text": PLAN},
    "/templates/save": {"text": "steps: [{id: a}]", "name": "bad"},
    "/schedules/new": {"text": PLAN, "name": "n", "do": "create", "cron": "7 7", "timezone": "UTC", "overlap": "skip"},
    "/agents": {"request": "Look around", "calls": "many"},
    "APPROVE": {"step": "gate", "edit": "1", "a.seconds": "soon"},
}
"""What is sent, most of it with a mistake, by where; the answer is a page."""
NO_PAGES = {
    "/mcp": "for agents",
    "/.well-known/oauth-protected-resource": "for agents",
    "/.well-known/oauth-protected-resource/mcp": "for agents",
    "/static/{version}/{name:path}": "scripts and styles",
    "/inbox/live": "a stream",
    "/inbox/count": "a part of every page",
    "/plans/{plan_id}/live": "a stream",
    "/plans/{plan_id}/logs/live": "a stream",
    "/plans/{plan_id}/list": "a part of the plan's page",
    "/plans/{plan_id}/decisions": "a part of the plan's page",
    "/plans/{plan_id}/graph.json": "data",
    "/plans/{plan_id}/value/{step_id:path}": "data",
}


def test_every_page_is_looked_at(tmp_path: Path) -> None:
    found = application(service_for(Settings.read({"HOME": str(tmp_path)}), None)).routes
    routes = [each for each in found if isinstance(each, Route) and (not each.methods or "GET" in each.methods)]
    paths = [path.partition("?")[0] for path in pages_about("p", ["a"], ["b"])]
    opened_ones = {next(each.path for each in routes if each.path_regex.match(path)) for path in paths}
    assert {each.path for each in routes} - opened_ones - PAGES.keys() == set(NO_PAGES)


async def send(page: Page, origin: str, path: str, fields: dict[str, str]) -> None:
    """Send a form, as a page of the application would, with its token."""
    try:
        await page.goto(f"{origin}/start")
    except Error:  # the page before went on by itself in the same moment
        await page.wait_for_load_state()
        await page.goto(f"{origin}/start")
    async with page.expect_navigation():
        await page.evaluate(
            """([path, fields]) => {
                const form = document.createElement("form");
                form.method = "post";
                form.action = path;
                const csrf = document.querySelector("input[name=csrf]").value;
                for (const [name, value] of Object.entries({...fields, csrf})) {
                    const field = document.createElement("textarea");
                    field.name = name;
                    field.value = value;
                    form.append(field);
                }
                document.body.append(form);
                form.submit();
            }""",
            [path, fields],
        )


@pytest.mark.slow
async def test_every_other_page_can_be_read_by_everybody(
    chromium: Browser, server: Server, temporal_client: Client, settings: Settings, worker: Worker, start: Start,
    workspace: Path,
) -> None:  # fmt: skip
    (workspace / "greet.yaml").write_text(PLAN)
    plan = await start({**GATE, "description": "Let it through"}, review=False)
    await start({**GATE, "id": "each", "args": {"seconds": "$item"}, "forEach": {"items": [1, 2, 3]}}, review=False)

    async def asks() -> Any:
        return (await runs.brief(temporal_client, plan)).pending

    await until(asks, "the step asks")
    item, run = (await asks())[0], temporal_client.get_workflow_handle(f"plan-{plan}")
    first_run = (await run.describe()).raw_description.workflow_execution_info.first_run_id
    expires = datetime.now(UTC) + timedelta(hours=1)
    link = Links(settings).issue(plan, first_run, "gate", item.version, item.digest, "ann@example.org", expires)
    schedule = f"nightly-{settings.task_queue}"
    made = {
        "DECIDE": decision_url(plan, "gate"), "LINK": f"/decide/{link}", "SCHEDULE": f"/schedules/{schedule}",
        "APPROVE": f"/plans/{plan}/approve", "UNDO": f"/plans/{plan}/undo",
    }  # fmt: skip
    async with served_at(page_of(server, settings, temporal_client)) as origin, opened(chromium, PHONE) as page:
        await page.goto(f"{origin}/?key={SECRET}")
        await page.wait_for_url(f"{origin}/")
        await send(page, origin, "/templates/save", {"text": PLAN, "name": "greet", "description": "Greets somebody"})
        more = {"name": schedule, "do": "create", "cron": "0 7 * * *", "timezone": "Europe/Berlin", "overlap": "skip"}
        await send(page, origin, "/schedules/new", {"text": PLAN, **more, "input.name": "Ann", "note": "For the day"})
        found = []
        for path in (made.get(each, each) for paths in PAGES.values() for each in paths):
            answer = await page.goto(f"{origin}{path}")
            assert answer is not None
            assert answer.status < 500, path
            found += await everywhere(page, re.sub(r"/decide/.{30,}", "/decide/LINK", path).replace(plan, "PLAN"))
        for path, fields in POSTED.items():
            await send(page, origin, made.get(path, path), fields)
            found += await everywhere(page, f"sent {path}")
        await send(page, origin, f"{made['SCHEDULE']}/delete", {})
    assert found == []
