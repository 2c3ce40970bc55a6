"""Deciding in a real browser, on a phone and without JavaScript: read, answered, and readable by a screen reader."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, ViewportSize
from temporalio.client import Client

from plansurvive.apps.web.common.service import Service
from plansurvive.apps.web.decisions.routes import decision_url
from plansurvive.client import runs
from plansurvive.client.access import SecretLink
from plansurvive.client.decisions import Choice
from tests.apps.web.browser import DESK, PHONE, everywhere, opened, overflow, problems, screenshot, served, watch
from tests.apps.web.decisions.conftest import Ask
from tests.apps.web.decisions.test_decide import GATE, decided, writing
from tests.apps.web.page_client import SECRET, pages_of

QUESTION = {
    "id": "where", "tool": "ask",
    "args": {
        "question": "Where shall release 4.2 go first?\nThe canary has run for two days without an error.",
        "schema": {
            "type": "object",
            "properties": {
                "region": {"enum": ["eu-central", "us-east", "ap-south"], "description": "The first region."},
                "percent": {"type": "integer", "minimum": 1, "maximum": 100, "default": 5},
                "note": {"type": "string", "format": "multiline"},
                "mail": {"type": "array", "items": {"type": "string", "format": "email"}},
            },
            "required": ["region", "percent"],
        },
        "timeout": 86_400, "onTimeout": "skip", "to": "the release manager",
    },
}  # fmt: skip
FIGURES = "".join(f"{quarter},{quarter * 1_000},{quarter * 37 % 11}\n" for quarter in range(1, 13))


@pytest_asyncio.fixture
async def page_at(service: Service, chromium: Browser) -> AsyncIterator[str]:
    """The origin of the served page; whoever opens `?key=` of it is ann."""
    found = Late(service)
    async with served(found) as origin:
        found.begin(origin)
        yield origin


class Late:
    """The application, made once its address is known."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def begin(self, origin: str) -> None:
        """Make it."""
        link = SecretLink(SECRET, origin.removeprefix("http://"), "ann")
        self._app = pages_of(replace(self._service, access=link))

    async def __call__(self, scope, receive, send) -> None:  # type: ignore[no-untyped-def]
        """Serve a request."""
        if scope["type"] == "lifespan":
            return
        await self._app(scope, receive, send)


async def at(page: Page, origin: str, path: str) -> None:
    """Open a page with the link."""
    await page.goto(f"{origin}{path}?key={SECRET}")
    await page.wait_for_url(f"{origin}{path}")


@pytest.mark.slow
@pytest.mark.sampled
async def test_a_call_is_read_with_its_diff_and_approved_on_a_phone(
    page_at: str, chromium: Browser, ask: Ask, workspace: Path, temporal_client: Client, tmp_path: Path
) -> None:
    (workspace / "figures.csv").write_text(FIGURES)
    changed = FIGURES.replace("5,5000,9", "5,5100,9").replace("12,12000", "12,11990")
    plan = await ask(writing("figures.csv", changed), title="Publish the quarter")
    async with opened(chromium, PHONE) as page:
        watched = watch(page)
        await at(page, page_at, decision_url(plan, "save"))
        assert await page.locator(".diff .minus").all_inner_texts() == ["-5,5000,9\n", "-12,12000,4\n"]
        assert await overflow(page) == 0
        assert await problems(page) == []
        for button in await page.locator(".decide .actions > *").all():
            box = await button.bounding_box()
            assert box is None or box["height"] >= 44
        await screenshot(page, tmp_path / "approve.png", whole=True)
        await page.get_by_role("button", name="Approve save").click()
        await page.wait_for_url(f"{page_at}/plans/{plan}")
        assert watched.foreign(page_at) == []
    found = await decided(temporal_client, plan, "save")
    assert (found.approved, found.by) == (True, "ann")


@pytest.mark.slow
@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
async def test_approve_and_deny_are_in_reach_before_anything_is_scrolled(
    size: ViewportSize, page_at: str, chromium: Browser, ask: Ask, workspace: Path
) -> None:
    """Of a call that fits into the window, and of one that does not; the header of the page is one row."""
    lines = [f"line {number}\n" for number in range(400)]
    (workspace / "short.txt").write_text("one\ntwo\nthree\n")
    (workspace / "long.txt").write_text("".join(lines))
    short = await ask(writing("short.txt", "one\nTWO\nthree\n"))
    long = await ask(writing("long.txt", "".join(lines).upper()))
    async with opened(chromium, size) as page:
        for plan in (short, long):
            await at(page, page_at, decision_url(plan, "save"))
            for name in ("Approve save", "Deny save"):
                box = await page.get_by_role("button", name=name).bounding_box()
                assert box is not None
                assert box["y"] + box["height"] <= size["height"]
            head = await page.locator("header.top").bounding_box()
            assert head is not None
            assert head["height"] <= 50
        await at(page, page_at, "/inbox")
        assert await problems(page) == []


async def test_what_a_phone_has_no_room_for_is_in_a_menu(page_at: str, chromium: Browser) -> None:
    async with opened(chromium, PHONE) as page:
        await at(page, page_at, "/inbox")
        await page.get_by_text("Menu").click()
        assert await problems(page) == []
        assert await overflow(page) == 0
        await page.get_by_role("link", name="Templates").click()
        await page.wait_for_url(f"{page_at}/templates")


@pytest.mark.slow
async def test_a_question_is_answered_with_a_form_and_a_mistake_is_shown_at_its_field(
    page_at: str, chromium: Browser, ask: Ask, temporal_client: Client, tmp_path: Path
) -> None:
    plan = await ask(QUESTION)
    async with opened(chromium, PHONE, dark=True) as page:
        await at(page, page_at, decision_url(plan, "where"))
        assert "the step is skipped" in await page.inner_text("main")
        await page.get_by_label("us-east").check()
        await page.get_by_label("percent").fill("500")
        await page.get_by_label("note").fill("two\nlines")
        await page.get_by_role("button", name="Answer").click()
        error = page.get_by_text("must be 100 or less")
        await error.wait_for()
        assert await page.get_by_label("us-east").is_checked()
        assert await page.get_by_label("percent").input_value() == "500"
        assert await page.get_by_label("note").input_value() == "two\nlines"
        assert await problems(page) == []
        assert await overflow(page) == 0
        await screenshot(page, tmp_path / "question.png", whole=True)
        await page.get_by_label("percent").fill("20")
        await page.get_by_role("button", name="Add another").click()
        await page.get_by_label("mail 2").fill("ann@example.org")
        await page.get_by_role("button", name="Answer").click()
        await page.wait_for_url(f"{page_at}/plans/{plan}")
    step = (await runs.show(temporal_client, plan)).step("where")
    assert step is not None
    assert step.answer is not None
    assert step.answer.by == "ann"
    assert step.result is not None
    assert step.result.value == {
        "region": "us-east", "percent": 20, "note": "two\nlines", "mail": ["ann@example.org"],
    }  # fmt: skip


async def test_without_javascript_the_inbox_approves_and_denies(
    page_at: str, chromium: Browser, ask: Ask, temporal_client: Client
) -> None:
    plan = await ask(GATE, {**GATE, "id": "other", "args": {"seconds": 0.5}}, waits="other")
    async with opened(chromium, PHONE, scripts=False) as page:
        await at(page, page_at, "/inbox")
        await page.get_by_role("button", name="Approve gate").click()
        await page.get_by_text("step 'gate' approved by ann").wait_for()
        await page.get_by_role("group").get_by_text("Comment").click()
        await page.get_by_role("textbox", name="Comment on other").fill("not now")
        await page.get_by_role("button", name="Deny other").click()
        await page.get_by_text("step 'other' denied by ann (web): not now").wait_for()
    assert (await decided(temporal_client, plan, "gate")).approved
    assert not (await decided(temporal_client, plan, "other")).approved


@pytest.mark.slow
async def test_the_inbox_follows_what_others_decide_and_what_is_new_without_moving(
    page_at: str, chromium: Browser, ask: Ask, temporal_client: Client, workspace: Path, tmp_path: Path
) -> None:
    (workspace / "figures.csv").write_text(FIGURES)
    first = await ask(writing("figures.csv", FIGURES.replace("7", "8")), title="Publish the quarter")
    await ask({"id": "clean", "tool": "delete_file", "args": {"path": "figures.csv"}}, title="Tidy up")
    async with opened(chromium, DESK) as page:
        await at(page, page_at, "/inbox")
        await page.locator(".decision").nth(1).wait_for()
        await page.locator(".decision .comment summary").nth(1).click()
        await page.get_by_role("textbox", name="Comment on clean").fill("half typed")
        await runs.deny(temporal_client, first, Choice(step_id="save", by="bob"))
        await page.get_by_text("step 'save' denied by bob").first.wait_for()
        assert await page.get_by_role("button", name="Approve save").count() == 0
        newest = await ask(QUESTION, title="Release 4.2")
        await page.locator(f'.decision a[href="/plans/{newest}"]').wait_for()
        assert await page.get_by_role("textbox", name="Comment on clean").input_value() == "half typed"
        assert "1 new" in await page.inner_text("#live")
        assert await problems(page) == []
        await screenshot(page, tmp_path / "inbox.png", whole=True)


@pytest.mark.slow
async def test_every_page_of_decisions_is_readable_in_both_sizes_and_schemes(
    page_at: str, chromium: Browser, ask: Ask
) -> None:
    plan = await ask(
        {**GATE, "id": "each", "args": {"seconds": "$item"}, "forEach": {"items": [1, 2, 3]}}, waits="each[*]"
    )
    await ask({"id": "run", "tool": "run_command", "args": {"command": "make all | tee log.txt", "env": {"CI": "1"}}})
    async with opened(chromium, PHONE) as page:
        for path in ("/inbox", decision_url(plan, "each[1]")):
            await at(page, page_at, path)
            assert await everywhere(page, path.replace(plan, "each")) == []


@pytest.mark.slow
async def test_a_question_that_the_servers_index_does_not_list_yet_is_not_called_over(
    ask: Ask, temporal_client: Client, page_at: str, chromium: Browser
) -> None:
    """The index is behind for a moment; here for as long as the page is open."""
    plan, none = await ask(GATE), 'event: waiting\ndata: {"keys": [], "gone": {}, "problem": "", "count": 0}\n\n'
    async with opened(chromium, PHONE) as page:
        await page.goto(f"{page_at}/?key={SECRET}")
        await page.route(
            "**/inbox/live", lambda route: route.fulfill(body=none, headers={"content-type": "text/event-stream"})
        )
        await page.goto(f"{page_at}{decision_url(plan, 'gate')}")
        told = "new EventSource('/inbox/live').addEventListener('waiting', () => setTimeout(done, 200))"
        await page.evaluate(f"new Promise((done) => {told})")
        assert await page.locator(".over-text").count() == 0
        await page.get_by_role("button", name="Approve gate").click()
        assert (await decided(temporal_client, plan, "gate")).approved
