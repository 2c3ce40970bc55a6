"""Hostile texts in everything that a page shows, on every page there is, in a real Chromium: nothing of them runs.

Plans are written by LLMs and other people: their titles, arguments, values, errors, files and questions are data. The
pages are found in the table of routes, so that a new one is attacked as well. Every page is fetched and parsed by the
browser; one of each route, another each day, is opened with all that its scripts make of it, and every one at night.
"""

from __future__ import annotations

import random
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import pytest_asyncio
from playwright.async_api import Browser
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from temporalio.client import Client
from temporalio.worker import Worker

from plansurvive.apps.web.app import application
from plansurvive.apps.web.common.service import Service
from plansurvive.client import runs
from plansurvive.plans.run import Options
from plansurvive.runtime.settings import Settings
from tests.apps.web.access.serving import Page, served
from tests.apps.web.browser import opened, watch
from tests.kit.driving import terminated
from tests.kit.waiting import until
from tests.nightly import TURN

pytestmark = pytest.mark.slow
SCRIPT = "window.pwned=1"
PAYLOAD = (
    f"</title></textarea></pre></script>\"'><script>{SCRIPT}</script><img src=x onerror={SCRIPT}>"
    f"<svg/onload={SCRIPT}><a href=javascript:{SCRIPT}>x</a><iframe srcdoc='<script>top.{SCRIPT}</script>'></iframe>"
    "<base href=//evil.example><style>*{display:none}</style>${7*7}<%=7*7%>\u202e\u200b<!--"
)
NAME = f"<img src=x onerror={SCRIPT}>.txt"
"""A file name; slashes would make directories."""
LEFT_OUT = {"/static/{version}/{name:path}", "/login", "/login/callback"}
"""Routes without a page: files, other sites; and streams, which end in STREAM."""
STREAM = "/live"
_HOSTILE = "script:not([src]), [onerror], [onload], base, iframe, style, a[href^=javascript]"
BREACHES = f"document.querySelectorAll('{_HOSTILE}').length"
PARSED = f"""async addresses => {{
    const found = [];
    for (const address of addresses) {{
        const answer = await fetch(address), text = await answer.text();
        const page = new DOMParser().parseFromString(text, 'text/html');
        const isPage = answer.headers.get('content-type').startsWith('text/html');
        const isText = /^(text\\/plain|application\\/json)/.test(answer.headers.get('content-type'))
            && answer.headers.get('x-content-type-options') === 'nosniff';
        const breaches = isPage ? page.querySelectorAll('{_HOSTILE}').length : isText ? 0 : 1;
        found.push([address, text.includes('{SCRIPT}'), breaches]);
    }}
    return found;
}}"""
"""Of each address: whether the texts are there, and how much of them is more than text; a parser runs no script."""
GATE: dict[str, Any] = {"id": "gate", "tool": "write_file", "description": PAYLOAD, "requiresApproval": True}
PLANS: dict[str, dict[str, Any]] = {
    "asks": {"steps": [GATE | {"args": {"path": NAME, "content": PAYLOAD}}]},
    "asks in a loop": {
        "steps": [{
            "id": "each", "forEach": {"items": [PAYLOAD[:80], NAME], "as": "it"},
            "steps": [GATE | {"id": "in", "args": {"path": "{{it}}.txt", "content": "{{it}}"}}],
        }],
    },
    "has a question": {
        "steps": [{
            "id": "ask", "tool": "ask", "args": {
                "question": PAYLOAD, "to": PAYLOAD[:100], "choices": [NAME, f'"{SCRIPT}'],
            },
        }],
    },
    "failed": {
        "steps": [
            {"id": "read", "tool": "read_file", "args": {"path": NAME + "x"}, "description": PAYLOAD},
            {"id": "say", "tool": "run_command", "args": {"command": "cat *; exit 3"}},
            {"id": "save", "tool": "write_file", "args": {"path": NAME, "content": PAYLOAD}},
        ],
    },
}  # fmt: skip


async def _raw(_request: Request) -> Response:
    return HTMLResponse(f"<!doctype html><title>raw</title><body>{PAYLOAD}")


@pytest_asyncio.fixture
async def plans(
    temporal_client: Client, settings: Settings, worker: Worker, workspace: Path
) -> AsyncIterator[dict[str, list[str]]]:
    """Hostile plans by id, with the ids of their steps."""
    assert worker.is_running
    (workspace / NAME).write_text(PAYLOAD[::-1] + PAYLOAD)
    found: dict[str, list[str]] = {}
    for kind, plan in [*PLANS.items(), ("a draft", PLANS["failed"])]:
        options = Options(
            workspace=str(workspace), by=PAYLOAD[:200], approve_all=kind == "failed", review=kind == "a draft"
        )
        given = {"title": f"{kind} {PAYLOAD}"[:500], **plan}
        started = await runs.start(temporal_client, given, options=options, queue=settings.task_queue)
        found[started.plan_id] = []

    async def all_stand() -> bool:
        views = [await runs.show(temporal_client, plan) for plan in found]
        for view in views:
            inner = [each.id for step in view.steps for each in step.instances]
            found[view.id or ""] = [step.id for step in view.steps] + inner
        return all(view.pending or view.ended_at or view.status == "review" for view in views)

    await until(all_stand, "each plan waits or has ended")
    found.pop("", None)
    yield found
    for plan_id in found:
        await terminated(temporal_client, f"plan-{plan_id}")


def addresses(app: Any, plans: dict[str, list[str]]) -> dict[str, list[str]]:
    """By route, the address of every page, with every plan and step."""
    found: dict[str, list[str]] = {}
    for route in app.router.routes:
        if "GET" not in (route.methods or ()) or route.path in LEFT_OUT or route.path.endswith(STREAM):
            continue
        for plan, steps in plans.items() if "{plan_id}" in route.path else [("", [])]:
            for step in steps if "{step_id:path}" in route.path else [""]:
                path = route.path.replace("{plan_id}", plan).replace("{step_id:path}", quote(step, safe=""))
                filled = re.sub(r"\{[^}]*\}", quote(PAYLOAD[:300], safe=""), path)
                found.setdefault(route.path, []).append(filled)
    return found


@pytest.mark.sampled
async def test_no_text_of_a_plan_runs_on_any_page(
    chromium: Browser, settings: Settings, temporal_client: Client, plans: dict[str, list[str]], request: Any
) -> None:
    chance, is_night = random.Random(TURN), request.config.getoption("nightly")
    async with served(settings, temporal_client, [Route("/raw", _raw)]) as page, opened(chromium) as tab:
        await tab.goto(page.access.link("/logged-out"))
        await tab.wait_for_url("**/logged-out")
        # Control: a page that escapes nothing is noticed, and the policy of its headers keeps the scripts from running.
        seen = watch(tab)
        await tab.goto(f"{page.origin}/raw")
        assert await tab.evaluate(BREACHES) >= 5
        assert await tab.evaluate("window.pwned") is None
        assert any("Content Security Policy" in each for each in seen.complaints)
        await tab.goto(f"{page.origin}/logged-out")
        [[_, _, breaches]] = await tab.evaluate(PARSED, ["/raw"])
        assert breaches >= 5
        routes = addresses(application(_service(settings, page)), plans)
        parsed = await tab.evaluate(PARSED, [address for route in routes.values() for address in route])
        assert [address for address, _, breaches in parsed if breaches] == []
        assert sum(has_texts for _, has_texts, _ in parsed) >= len(plans)  # the texts are there to be read
        seen.complaints.clear()
        for address in (each for route in routes.values() for each in (route if is_night else [chance.choice(route)])):
            answer = await tab.goto(page.origin + address)
            assert answer is not None
            found = (await tab.evaluate(BREACHES), await tab.evaluate("window.pwned"))
            assert found == (0, None), address
            assert seen.foreign(page.origin) == [], address
            breaches = [each for each in seen.complaints if "Content Security Policy" in each or "pwned" in each]
            assert breaches == [], address


def _service(settings: Settings, page: Page) -> Service:
    return Service(settings, {}, page.access)
