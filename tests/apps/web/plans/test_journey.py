"""One person's way through the page on a phone, from the form that starts a plan to its end, in one browser session."""

from __future__ import annotations

import signal
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from playwright.async_api import Browser, Page, expect
from temporalio.client import Client

from examples.scripted_llm.script import Script
from examples.scripted_llm.server import ScriptedLlm
from plansurvive.client import runs
from plansurvive.runtime.server import Server
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.task_queues import listeners
from tests.apps.web.browser import PHONE, opened, served_at, watch
from tests.apps.web.drafts.test_in_chromium import WAIT, is_good, page_of
from tests.apps.web.page_client import SECRET
from tests.apps.web.test_live import _worker as worker_process
from tests.kit.driving import terminated
from tests.kit.waiting import until

COUNT = "echo counting; until [ -e counted ]; do sleep 0.05; done; echo counted; rm counted"
PLAN = f"""\
title: Publish the quarter
inputs:
  quarter: {{type: string, description: Which quarter}}
steps:
  - {{id: count, tool: run_command, args: {{command: "{COUNT}"}}, requiresApproval: false, description: Count again}}
  - {{id: save, tool: write_file, dependsOn: [count], description: Write the figures,
      args: {{path: figures.csv, content: "quarter,sales\\n{{{{inputs.quarter}}}},100\\n"}}}}
"""
BEFORE, TYPED = "quarter,sales\nQ2,90\n", "quarter,sales\nQ3,120\n"
REVISED = {
    "title": "Publish the quarter",
    "steps": [
        {"id": "count", "tool": "run_command", "args": {"command": COUNT}, "description": "Count again"},
        {
            "id": "where", "tool": "ask", "dependsOn": ["count"], "description": "Ask for the region",
            "args": {"question": "Which region are they for?", "choices": ["north", "south"]},
        },
        {
            "id": "save", "tool": "write_file", "dependsOn": ["where"], "description": "Write the figures",
            "args": {"path": "figures.csv", "content": TYPED + "region,{{where}}\n"},
        },
    ],
}  # fmt: skip


@pytest.mark.slow
async def test_a_person_takes_a_plan_from_its_form_to_its_end_on_a_phone_though_its_worker_dies(
    chromium: Browser, server: Server, temporal_client: Client, environ: dict[str, str], workspace: Path, tmp_path: Path
) -> None:
    (workspace / "publish.yaml").write_text(PLAN)
    (workspace / "figures.csv").write_text(BEFORE)
    async with AsyncExitStack() as parts:
        llm = parts.enter_context(ScriptedLlm(Script.of([{"reply": {"json": REVISED}}])))
        asking = environ | {"OPENAI_BASE_URL": llm.url, "PLANS_MODEL": "demo"}
        settings = Settings.read(asking)
        worker = await worker_process(parts, asking, tmp_path)
        await until(lambda: listeners(temporal_client, settings.task_queue), "the server sees the worker poll")
        origin = await parts.enter_async_context(served_at(page_of(server, settings, temporal_client)))
        page = await parts.enter_async_context(opened(chromium, PHONE))
        seen = watch(page)
        await page.goto(f"{origin}/start?key={SECRET}")
        plan = await _started_by_form(page)
        parts.push_async_callback(terminated, temporal_client, f"plan-{plan}")
        await _edited_and_revised(page)
        await page.get_by_role("button", name="Start version 3").click()
        await page.wait_for_url(f"{origin}/plans/{plan}")
        await _followed(page, workspace)
        await _outlives(page, worker)
        await worker_process(parts, asking, tmp_path)
        await expect(page.get_by_text("No worker answers since")).to_have_count(0, timeout=WAIT)
        await _answered(page)
        await page.wait_for_url(f"{origin}/plans/{plan}")
        await _approved_with_its_diff(page)
        await page.wait_for_url(f"{origin}/plans/{plan}")
        await expect(page.get_by_text("3 of 3 steps", exact=True)).to_be_visible(timeout=WAIT)
        await expect(page.get_by_label("How it ended").get_by_text("completed")).to_be_visible(timeout=WAIT)
        await is_good(page)
        assert seen.foreign(origin) == []
        assert seen.complaints == []
        assert (workspace / "figures.csv").read_text() == TYPED + "region,south\n"
        view = await runs.show(temporal_client, plan)
        saved = view.step("save")
        assert saved is not None
        assert saved.decision is not None
        assert (saved.decision.by, [each.by for each in view.changes]) == ("ann", ["ann", "ann"])


async def _started_by_form(page: Page) -> str:
    """Choose the file, fill in its inputs and start it, to be reviewed; the plan's id."""
    await page.get_by_role("link", name="publish.yaml").click()
    await page.get_by_label("quarter").fill("Q3")
    await page.get_by_label("Review it first").check()
    await is_good(page)
    await page.get_by_role("button", name="Start", exact=True).click()
    await expect(page.get_by_role("heading", name="Publish the quarter")).to_be_visible(timeout=WAIT)
    return unquote(page.url.split("/plans/")[1].split("/")[0])


async def _edited_and_revised(page: Page) -> None:
    """Change a step by hand and have the LLM change the plan; both times the page shows the difference."""
    await page.get_by_role("link", name="Edit save").click()
    await page.get_by_label("content").fill(TYPED)
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("heading", name="What changed since version 1")).to_be_visible(timeout=WAIT)
    await expect(page.locator(".plan-diff > .changed")).to_contain_text("Q3,120")
    await page.get_by_text("Revise with the LLM", exact=True).click()
    await page.get_by_label("What should be different?").fill("Ask for the region")
    await page.get_by_role("button", name="Revise the plan").click()
    await expect(page.get_by_role("heading", name="What changed since version 2")).to_be_visible(timeout=WAIT)
    await expect(page.locator(".plan-diff > .added")).to_contain_text("Which region are they for?")
    await expect(page.locator(".plan-diff > .changed").last).to_contain_text("region,{{where}}")
    await is_good(page)


async def _followed(page: Page, workspace: Path) -> None:
    """Watch the first step begin and read what it writes, as it writes it; back on the plan, the question has come.

    It asks, though the file did not: the LLM has written the step anew, and what it writes is not a person's waiver.
    """
    await page.get_by_role("link", name="Decide count").click(timeout=WAIT)
    await page.get_by_role("button", name="Approve count").click()
    await expect(page.locator("[data-step=count].status-running")).to_be_visible(timeout=WAIT)
    await page.get_by_role("link", name="Logs").click()
    output = page.get_by_role("log")
    await expect(output.get_by_text("counting")).to_be_visible(timeout=WAIT)
    await expect(output.get_by_text("counted", exact=True)).to_have_count(0)
    (workspace / "counted").touch()
    await expect(output.get_by_text("counted", exact=True)).to_be_visible(timeout=WAIT)
    await is_good(page)
    await page.get_by_role("link", name="Publish the quarter").click()
    await expect(page.locator("[data-step=count].status-completed")).to_be_visible(timeout=WAIT)
    await expect(page.get_by_role("link", name="Answer")).to_be_visible(timeout=WAIT)


async def _outlives(page: Page, worker: Any) -> None:
    """The worker dies under the open page, which says so and still shows the plan."""
    worker.send_signal(signal.SIGKILL)
    await worker.wait()
    await expect(page.get_by_text("No worker answers since")).to_be_visible(timeout=WAIT)
    await expect(page.locator("[data-step=where]")).to_be_visible()
    await is_good(page)


async def _answered(page: Page) -> None:
    """Answer the question."""
    await page.get_by_role("link", name="Answer").click()
    await expect(page.get_by_text("Which region are they for?")).to_be_visible(timeout=WAIT)
    await page.get_by_label("south").check()
    await is_good(page)
    await page.get_by_role("button", name="Answer").click()


async def _approved_with_its_diff(page: Page) -> None:
    """The approval comes up on the open page; its diff is read whole, without scrolling sideways."""
    await page.get_by_role("link", name="Decide save").click(timeout=WAIT)
    assert await page.locator(".diff .minus").all_inner_texts() == ["-Q2,90\n"]
    assert await page.locator(".diff .plus").all_inner_texts() == ["+Q3,120\n", "+region,south\n"]
    await is_good(page)
    await page.get_by_role("button", name="Approve save").click()
