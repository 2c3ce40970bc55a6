"""A real browser: start by form, edit a draft, have it revised and see the difference; on a phone, without scripts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect
from temporalio.client import Client
from temporalio.worker import Worker

from examples.scripted_llm.script import Script
from examples.scripted_llm.server import ScriptedLlm
from plansurvive.apps.web.common.service import Service
from plansurvive.client.access import SecretLink
from plansurvive.runtime.connect import Connection, Origin
from plansurvive.runtime.server import Server
from plansurvive.runtime.settings import Settings
from tests.apps.web.browser import DESK, PHONE, everywhere, opened, overflow, problems, served_at, watch
from tests.apps.web.page_client import SECRET, pages_of
from tests.apps.web.visiting import LIST, READ, WRITE, Start, working
from tests.kit.driving import terminated
from tests.kit.waiting import PATIENCE
from tests.nightly import only_nightly, only_sampled

WAIT = PATIENCE * 1_000
"""Milliseconds that the LLM may take, and a machine that is busy."""
PLAN = """\
title: Greet somebody
inputs:
  name: {type: string, description: Whom to greet}
  loud: {type: boolean, default: false}
steps:
  - {id: greet, tool: write_file, args: {path: hello.txt, content: "{{inputs.name}}"}, description: Say hello}
  - {id: ask, tool: run_command, args: {command: "true"}, dependsOn: [greet]}
"""


def page_of(server: Server, settings: Settings, client: Client) -> Any:
    """Makes the application for an origin: the link to it has a known secret."""
    connection = Connection(client, server.address, Origin.CONFIGURED)
    return lambda origin: pages_of(
        Service(settings, {}, SecretLink(SECRET, origin.removeprefix("http://"), "ann"), connection)
    )


async def is_good(page: Page) -> None:
    """The page has no serious problem of accessibility and is not wider than the window."""
    assert await problems(page) == []
    assert await overflow(page) == 0


@pytest.mark.parametrize("scripts", [only_sampled(True), only_nightly(False)], ids=["with scripts", "without scripts"])
async def test_a_plan_is_started_by_form_edited_revised_and_begun_on_a_phone(
    scripts: bool, chromium: Browser, server: Server, temporal_client: Client, settings: Settings, workspace: Path
) -> None:
    (workspace / "greet.yaml").write_text(PLAN)
    changed = {**WRITE, "id": "greet", "args": {"path": "hello.txt", "content": "Dear Ann"}}
    with ScriptedLlm(Script.of([{"reply": {"json": {"title": "Greet somebody", "steps": [changed, LIST]}}}])) as llm:
        asking = settings.with_flags(openai_base_url=llm.url, model="demo")
        async with (
            working(temporal_client, asking),
            served_at(page_of(server, asking, temporal_client)) as origin,
            opened(chromium, PHONE, scripts=scripts) as page,
        ):
            seen = watch(page)
            await page.goto(f"{origin}/start?key={SECRET}")
            await page.get_by_role("link", name="greet.yaml").click()
            await expect(page.get_by_role("heading", name="1 step will ask a person")).to_be_visible()
            await is_good(page) if scripts else None
            await page.get_by_label("name").fill("Ann")
            await page.get_by_label("Review it first").check()
            await page.get_by_role("button", name="Start", exact=True).click()
            await expect(page.get_by_role("heading", name="Greet somebody")).to_be_visible()
            await is_good(page) if scripts else None
            await page.get_by_role("link", name="Edit greet").click()
            await page.get_by_label("content").fill("Hello Ann")
            await page.get_by_role("button", name="Save").click()
            await expect(page.get_by_text("Saved as version 2.")).to_be_visible()
            await expect(page.get_by_role("heading", name="What changed since version 1")).to_be_visible()
            await page.get_by_text("Revise with the LLM", exact=True).click()
            await page.get_by_label("What should be different?").fill("Be polite")
            await page.get_by_role("button", name="Revise the plan").click()
            await expect(page.get_by_role("heading", name="What changed since version 2")).to_be_visible(timeout=WAIT)
            await expect(page.locator(".plan-diff > .removed")).to_contain_text("ask")
            await expect(page.locator(".plan-diff > .added")).to_contain_text("list")
            await expect(page.locator(".plan-diff > .changed")).to_contain_text("Dear Ann")
            await is_good(page) if scripts else None
            name = re.search(r"/plans/([^/]+)/draft", page.url)
            assert name is not None
            await page.get_by_role("button", name="Start version 3").click()
            await page.wait_for_url(f"{origin}/plans/{name[1]}")
            assert seen.foreign(origin) == []
    await terminated(temporal_client, f"plan-{name[1]}")


@pytest.mark.slow
@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
async def test_a_plan_in_review_is_short_and_each_of_its_steps_can_be_changed(
    size: Any, chromium: Browser, server: Server, temporal_client: Client, settings: Settings, start: Start
) -> None:
    """Two screens for four steps, two of which ask; what changes a step is in a menu."""
    ask = {"requiresApproval": True}
    plan = await start(WRITE, READ, {**LIST, **ask}, {**LIST, **ask, "id": "again"})
    async with (
        served_at(page_of(server, settings, temporal_client)) as origin,
        opened(chromium, size) as page,
    ):
        await page.goto(f"{origin}/?key={SECRET}")
        await page.wait_for_url(f"{origin}/")
        await page.goto(f"{origin}/plans/{plan}/draft")
        assert await page.evaluate("document.documentElement.scrollHeight") < 2 * size["height"]
        await page.locator("li.step", has_text="again").locator(".of-step summary").click()
        await is_good(page)
        await page.get_by_role("button", name="Skip again").click()
        await page.locator("li.step.skipped", has_text="again").wait_for()


@pytest.mark.slow
async def test_every_page_about_drafts_can_be_read_by_everybody(
    chromium: Browser, server: Server, temporal_client: Client, settings: Settings, worker: Worker, start: Start,
    workspace: Path,
) -> None:  # fmt: skip
    (workspace / "greet.yaml").write_text(PLAN)
    plan = await start(WRITE, READ, {**LIST, "requiresApproval": True, "when": "read != ''"})
    paths = ["draft", "draft/steps/write", "draft/add?tool=run_command", "rerun", "undo", "event"]
    async with (
        served_at(page_of(server, settings, temporal_client)) as origin,
        opened(chromium, PHONE) as page,
    ):
        await page.goto(f"{origin}/?key={SECRET}")
        await page.wait_for_url(f"{origin}/")
        for path in paths:
            await page.goto(f"{origin}/plans/{plan}/{path}")
            assert await everywhere(page, path) == []
        await page.goto(f"{origin}/start/plan?file=greet.yaml")
        for field in await page.locator("form.fields textarea[name^='input.']").all():
            await field.fill("Ann")
        await page.get_by_role("button", name="What would happen").click()
        await expect(page.get_by_role("heading", name="What would happen")).to_be_visible(timeout=WAIT)
        assert await everywhere(page, "forecast") == []
