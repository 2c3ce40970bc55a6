"""The decisions of one plan on its own page: grouped as in the inbox, decided there, and counted alike everywhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.async_api import Browser
from temporalio.client import Client

from plansurvive.client import runs
from plansurvive.client.decisions import Choice
from plansurvive.plans.run import Options
from tests.apps.web.browser import PHONE, opened, overflow, problems
from tests.apps.web.decisions.conftest import Ask
from tests.apps.web.decisions.page import Page, seen
from tests.apps.web.decisions.test_browser import at
from tests.apps.web.decisions.test_browser import page_at as page_at
from tests.apps.web.decisions.test_decide import GATE, decided
from tests.kit.driving import terminated
from tests.kit.waiting import until

LOOP = {**GATE, "id": "each", "args": {"seconds": "$item"}, "forEach": {"items": [0.001, 0.002, 0.003]}}
QUESTION = {"id": "who", "tool": "ask", "args": {"question": "Who announces it?"}}


def numbers(page: Page) -> list[int]:
    """What the page says is to be decided."""
    return [int(number) for number in re.findall(r"(\d+) to decide", page.text)]


async def test_the_items_of_a_loop_are_approved_together_on_the_page_of_their_plan(
    ask: Ask, ann: httpx.AsyncClient, temporal_client: Client
) -> None:
    plan = await ask(LOOP, QUESTION, waits="each[*]")
    page = await until(lambda: shown(ann, plan, "Approve sleep for 3 items?", "Who announces it?"), "all is shown")
    form = page.form(f"/plans/{plan}/approve")
    assert (form.value("step"), form.value("next")) == ("each[*]", "plan")
    answer = await form.send(ann, "Approve these")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/plans/{plan}")
    page = await until(lambda: shown(ann, plan, "Who announces it?"), "the question is left")
    assert "Approve sleep" not in page.text
    assert (await page.form(f"/plans/{plan}/answer").send(ann, "Answer", f="Ann")).status_code == 303


async def shown(ann: httpx.AsyncClient, plan: str, *texts: str) -> Page | None:
    page = await seen(ann, f"/plans/{plan}")
    return page if all(text in page.text for text in texts) else None


async def test_list_plan_inbox_and_navigation_count_alike(
    ask: Ask, ann: httpx.AsyncClient, temporal_client: Client, queue: str, workspace: Path
) -> None:
    """With items of a loop, plans inside a plan, of which each has a number as well, and a plan in review."""

    async def badge() -> int:
        """What the navigation counts: of the plans of other tests as well, also of those without a worker by now."""
        return int((Page((await ann.get("/inbox/count")).text).text.split() or ["0"])[0])

    before = await badge()
    loop = await ask(LOOP, QUESTION, waits="each[*]")
    inner = {"id": "sub", "tool": "plan", "args": {"steps": [GATE]}, "forEach": {"items": ["a", "b/c"], "key": "@"}}
    options = Options(workspace=str(workspace))
    parent = await runs.start(temporal_client, {"steps": [inner]}, options=options, queue=queue)
    draft = await runs.start(
        temporal_client, {"steps": [GATE]}, options=options.model_copy(update={"review": True}), queue=queue
    )
    expected = {loop: [2], parent.plan_id: [2], draft.plan_id: []}
    own = [loop, loop, parent.plan_id, parent.plan_id, draft.plan_id]
    """Whose cards there are: approvals of a loop together, a question, a step of each child plan, the review."""

    async def agree() -> bool:
        listed = {plan: numbers(await seen(ann, f"/?q={plan}")) for plan in expected}
        plans = {plan: sorted(set(numbers(await seen(ann, f"/plans/{plan}"))))[-1:] for plan in expected}
        inbox = await seen(ann, "/inbox")
        cards = [card for card in inbox.html.split("<article")[1:] if any(plan in card for plan in own)]
        return listed == plans == expected and len(cards) == await badge() - before == len(own)

    await until(agree, "all count alike")
    view = await runs.brief(temporal_client, parent.plan_id)
    children = [f"plan-{each.child.plan_id}" for each in view.steps[0].instances if each.child]
    assert len(children) == 2
    for workflow in (parent.workflow_id, *children, draft.workflow_id):
        await terminated(temporal_client, workflow)


@pytest.mark.slow
async def test_the_page_of_a_plan_follows_what_is_decided_elsewhere_without_moving(
    page_at: str, chromium: Browser, ask: Ask, temporal_client: Client
) -> None:
    later = {**GATE, "id": "later", "args": {"seconds": 0.5}, "dependsOn": ["gate"]}
    plan = await ask(GATE, {**GATE, "id": "other", "args": {"seconds": 0.25}}, later, waits="other")
    async with opened(chromium, PHONE) as page:
        await at(page, page_at, f"/plans/{plan}")
        await page.locator(".folded").nth(1).wait_for()
        assert await problems(page) == []
        assert await overflow(page) == 0
        await runs.approve(temporal_client, plan, Choice(step_id="gate", by="bob"))
        await page.locator(".folded.over").wait_for()
        await page.locator(".folded", has_text="later").wait_for()
        await page.locator(".folded", has_text="later").locator("summary").first.click()
        await page.get_by_role("button", name="Approve later").click()
        await page.get_by_text("step 'later' approved by ann").first.wait_for()
    found: Any = await decided(temporal_client, plan, "later")
    assert (found.approved, found.by) == (True, "ann")
