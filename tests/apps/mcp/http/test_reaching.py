"""Who reaches the MCP server of the page: over real HTTP, with the client of the official SDK."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio
from mcp.shared.exceptions import MCPError
from temporalio.client import Client
from temporalio.worker import Worker

from plansurvive.apps.mcp.callers import token
from tests.apps.mcp.http.reached import Page, reached

PLAN = {"steps": [{"id": "a", "tool": "sleep", "args": {"seconds": 0}}]}


@pytest_asyncio.fixture
async def page(temporal_client: Client, queue: str, state_dir: Path, workspace: Path) -> AsyncIterator[Page]:
    environ = {
        "PLANS_STATE_DIR": str(state_dir), "PLANS_WORKSPACE": str(workspace), "PLANS_TASK_QUEUE": queue,
        "PLANS_AUTO_WORKER": "off",
    }  # fmt: skip
    async with reached(environ, temporal_client) as found:
        yield found


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_an_agent_with_the_token_starts_a_plan_in_the_persons_name(page: Page, worker: Worker, mode: str) -> None:
    async with page.agent(page.token, mode) as agent:
        started = await agent.call_tool("plan_start", {"plan": PLAN})
        assert not started.is_error, started
        names = {each.name for each in (await agent.list_tools()).tools}
    assert "plan_show" in names
    assert not names & {"plan_approve", "plan_deny", "plan_answer"}


async def test_nobody_else_is_answered_and_each_is_told_what_is_missing(page: Page) -> None:
    nobody = await page.asked()
    assert (nobody.status_code, nobody.headers["www-authenticate"]) == (401, 'Bearer realm="plans"')
    wrong = await page.asked(Authorization="Bearer wrong")
    assert (wrong.status_code, 'error="invalid_token"' in wrong.headers["www-authenticate"]) == (401, True)
    assert (await page.asked(Authorization=f"Bearer {page.link.secret}")).status_code == 401
    async with httpx.AsyncClient(base_url=page.origin) as browser:
        await browser.get("/connect", params={"key": page.link.secret})
        by_cookie = await browser.post("/mcp", json={}, headers={"Origin": page.origin})
    assert by_cookie.status_code == 401


async def test_the_token_opens_no_page_and_decides_nothing(page: Page) -> None:
    headers = {"Authorization": f"Bearer {page.token}", "Origin": page.origin}
    async with httpx.AsyncClient(base_url=page.origin, headers=headers) as client:
        assert (await client.get("/inbox")).status_code == 403
        assert (await client.post("/plans/p/steps/a/decide", data={"decision": "approve"})).status_code == 403
        assert (await client.get("/connect")).status_code == 403


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"}, {"Host": "localhost"}, {"Origin": "https://evil.example"}, {"Origin": "null"},
        {"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "same-site"},
    ],
)  # fmt: skip
async def test_another_page_in_a_browser_reaches_nothing_even_with_the_token(
    page: Page, headers: dict[str, str]
) -> None:
    for method in ("POST", "GET", "DELETE", "OPTIONS"):
        answer = await page.asked(method, Authorization=f"Bearer {page.token}", **headers)
        assert answer.status_code == 403, (method, answer.text)
    assert (await page.asked(Authorization=f"Bearer {page.token}", Origin=page.origin)).status_code != 403


async def test_a_new_token_ends_the_old_one_at_once_for_sessions_too(page: Page) -> None:
    old = page.token
    async with page.agent(old, "legacy") as agent:
        await agent.list_tools()
        token(page.settings, new=True)
        with pytest.raises(MCPError):
            await agent.list_tools()
    assert (await page.asked(Authorization=f"Bearer {old}")).status_code == 401


async def test_the_page_shows_the_token_to_who_asks_and_in_no_other_page(page: Page) -> None:
    async with httpx.AsyncClient(base_url=page.origin, headers={"Origin": page.origin}) as browser:
        await browser.get("/connect", params={"key": page.link.secret})
        shown = await browser.get("/connect")
        assert (page.token in shown.text, f"{page.origin}/mcp" in shown.text) == (False, True)
        csrf = page.access.csrf(browser.cookies[page.access.cookie])
        assert page.token in (await browser.post("/connect", data={"csrf": csrf})).text
        old = page.token
        await browser.post("/connect/renew", data={"csrf": csrf})
    assert page.token != old


async def test_a_page_that_wants_none_has_no_server(state_dir: Path) -> None:
    async with reached({"PLANS_STATE_DIR": str(state_dir), "PLANS_WEB_MCP": "off"}) as found:
        assert (await found.asked(Authorization=f"Bearer {found.token}", Origin=found.origin)).status_code == 403
