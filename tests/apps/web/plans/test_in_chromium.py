"""A plan in a real browser: watched as it runs, its output followed, through the death of its worker; readable."""

from __future__ import annotations

import signal
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.async_api import Browser, expect
from temporalio.client import Client
from temporalio.worker import Worker

from plansurvive.client import runs
from plansurvive.runtime.server import Server
from plansurvive.runtime.settings import Settings
from tests.apps.web.browser import DESK, PHONE, SCRIPT_BUDGET, everywhere, opened, served_at, watch
from tests.apps.web.drafts.test_in_chromium import WAIT, page_of
from tests.apps.web.page_client import SECRET
from tests.apps.web.test_live import _worker as worker_process
from tests.apps.web.visiting import Start
from tests.kit.waiting import until

SPEAK = {
    "id": "speak",
    "tool": "run_command",
    "args": {"command": "echo first; until [ -e go ]; do sleep 0.05; done; echo second"},
    "requiresApproval": False,
    "description": "Say something",
}
REMOVE = {"id": "remove", "tool": "delete_file", "args": {"path": "go"}, "dependsOn": ["speak"]}
ITEMS = {
    "id": "each",
    "forEach": {"items": ["a", "b", "c", "d"], "as": "name", "key": "@", "tolerate": 2},
    "steps": [
        {"id": "read", "tool": "read_json", "args": {"path": "{{name}}.json"}, "retry": {"attempts": 1}},
        {"id": "drop", "tool": "delete_file", "args": {"path": "{{name}}.json"}, "dependsOn": ["read"]},
    ],
}
ASK = {"id": "who", "tool": "ask", "args": {"question": "Who?", "choices": ["ann", "bob"]}}


@pytest.mark.slow
async def test_a_plan_is_watched_through_the_death_of_its_worker(
    chromium: Browser, server: Server, temporal_client: Client, settings: Settings, environ: dict[str, str],
    start_unserved: Start, workspace: Path, tmp_path: Path,
) -> None:  # fmt: skip
    async with AsyncExitStack() as processes:
        worker = await worker_process(processes, environ, tmp_path)
        plan = await start_unserved(SPEAK, REMOVE, review=False)
        origin = await processes.enter_async_context(served_at(page_of(server, settings, temporal_client)))
        page = await processes.enter_async_context(opened(chromium, PHONE))
        logs = await processes.enter_async_context(opened(chromium, DESK))
        seen = watch(page)
        for each, path in ((page, f"/plans/{plan}"), (logs, f"/plans/{plan}/logs")):
            await each.goto(f"{origin}/?key={SECRET}")
            await each.wait_for_url(f"{origin}/")
            await each.goto(f"{origin}{path}")
        await expect(logs.get_by_text("first")).to_be_visible(timeout=WAIT)
        (workspace / "go").touch()
        await expect(logs.get_by_text("second")).to_be_visible(timeout=WAIT)
        await expect(page.get_by_text("awaiting approval").first).to_be_visible(timeout=WAIT)
        worker.send_signal(signal.SIGKILL)
        await expect(page.get_by_text("No worker answers since").first).to_be_visible(timeout=WAIT)
        await worker_process(processes, environ, tmp_path)
        await expect(page.get_by_text("No worker answers since")).to_have_count(0, timeout=WAIT)
        await page.get_by_role("link", name="Decide remove").click()
        await page.get_by_role("button", name="Approve").click()
        await page.goto(f"{origin}/plans/{plan}")
        await expect(page.get_by_text("completed").first).to_be_visible(timeout=WAIT)
        await expect(page.get_by_text("2 of 2 steps", exact=True)).to_be_visible(timeout=WAIT)
        assert seen.foreign(origin) == []
        assert not (workspace / "go").exists()


@pytest.mark.slow
@pytest.mark.sampled
async def test_every_page_about_a_plan_can_be_read_by_everybody_and_loads_little(
    chromium: Browser, server: Server, temporal_client: Client, settings: Settings, worker: Worker, start: Start,
    workspace: Path,
) -> None:  # fmt: skip
    for name in "abc":
        (workspace / f"{name}.json").write_text("{")
    (workspace / "c.json").write_text("{}")
    (workspace / "go").touch()
    plan = await start(SPEAK, ITEMS, ASK, REMOVE, review=False)

    async def waits() -> bool:
        view = await runs.brief(temporal_client, plan)
        return {each.step_id for each in view.pending} >= {"each[c].drop", "who", "remove"}

    await until(waits, "an item, a question and a step wait")
    names = ["", "/logs", "/files", "/changes", "/cost", "/gantt", "/inside/each", "/steps/speak", "/steps/who"]
    names.append("/steps/" + quote("each[c].drop", safe=""))
    async with (
        served_at(page_of(server, settings, temporal_client)) as origin,
        opened(chromium, PHONE) as page,
    ):
        await page.goto(f"{origin}/?key={SECRET}")
        await page.wait_for_url(f"{origin}/")
        for path in ("/", "/inbox", *(f"/plans/{plan}{name}" for name in names)):
            seen = watch(page)
            await page.goto(f"{origin}{path}")
            await expect(page.locator("main")).to_be_visible()
            assert await everywhere(page, path) == []
            assert seen.foreign(origin) == [], path
            assert seen.complaints == [], path
            assert sum((await seen.script_bytes()).values()) < SCRIPT_BUDGET, path
        await page.goto(f"{origin}/plans/{plan}")
        await page.get_by_text("Everything inside").first.click()
        await expect(page.locator("details[data-inside] ol.steps").get_by_text("each[a].read").first).to_be_visible(
            timeout=WAIT
        )
