"""Attacks on the page with a real Chromium: from another site, by another name, in a frame, with a used link.

The attacker's page is at evil.example, which is this machine as well (DNS rebinding), or at another port of 127.0.0.1,
which is the same site: there the browser sends the cookie. Every attack is judged at the server, by what arrived.
"""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Page as Tab
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from plansurvive.runtime.server import HOST
from plansurvive.runtime.settings import Settings
from tests.apps.web.access.serving import Page, on_socket, served
from tests.kit.waiting import until
from tests.runtime.browsers import EVIL, Chromium, chromium

pytestmark = pytest.mark.slow
NAMES = [EVIL, HOST]
"""Of the attacker's page: another site, and the same site at another port."""


@asynccontextmanager
async def attacker() -> AsyncIterator[int]:
    """A page of the attacker's, which does nothing by itself; gives its port."""

    async def page(_request: Request) -> Response:
        return HTMLResponse("<!doctype html><title>Win a prize</title><body>")

    with socket.create_server((HOST, 0)) as listening:
        async with on_socket(Starlette(routes=[Route("/{path:path}", page)]), listening):
            yield listening.getsockname()[1]


async def log_in(browser: Chromium, page: Page) -> Tab:
    """Open the link; gives the tab once it is at the page."""
    tab, error = await browser.open(page.access.link("/logged-out"))
    assert error == ""
    await until(lambda: browser.run(tab, "!location.search && document.readyState == 'complete'"), "the page is open")
    return tab


def form(page: Page, token: str) -> str:
    """A script that sends a form to the page."""
    fields = {"csrf": token, "what": "attack"}
    return f"""(() => {{
        const form = document.createElement('form');
        form.method = 'post'; form.action = {json.dumps(page.origin)} + '/change';
        for (const [name, value] of Object.entries({json.dumps(fields)})) {{
            const input = document.createElement('input'); input.name = name; input.value = value; form.append(input);
        }}
        document.body.append(form); form.submit(); }})()"""


def fetching(page: Page, token: str, mode: str) -> str:
    return f"""fetch({json.dumps(page.origin)} + '/change', {{method: 'POST', mode: '{mode}', credentials: 'include',
        body: new URLSearchParams({{csrf: '{token}', what: 'attack'}})}}).then(r => r.status, e => String(e))"""


def embedding(page: Page, what: str) -> str:
    return f"""new Promise(done => {{ const e = document.createElement('{what}');
        e.onload = () => done('loaded'); e.onerror = () => done('refused');
        e.src = {json.dumps(page.origin)} + '/frame-me';
        document.body.append(e); }})"""


@pytest.mark.sampled
async def test_a_page_of_another_site_or_port_changes_and_reads_nothing(settings: Settings) -> None:
    async with served(settings) as page, attacker() as port, chromium() as browser:
        own = await log_in(browser, page)
        token = page.access.csrf(next(iter(page.access.sessions._of_id)))
        # Control: the page's own form, with a session and its token, is taken.
        await browser.run(own, form(page, token))
        await until(lambda: page.changed == ["attack"], "the page's own form arrives")
        page.changed.clear()
        page.came.clear()
        for name in NAMES:
            for script in (form(page, token), fetching(page, token, "no-cors"), fetching(page, token, "cors")):
                count = len(page.came)
                tab, error = await browser.open(f"http://{name}:{port}/")
                assert error == ""
                await browser.run(tab, script)
                await until(lambda count=count: len(page.came) > count, "the attack arrives")  # type: ignore[misc]
            for what in ("iframe", "img", "script"):
                tab, _ = await browser.open(f"http://{name}:{port}/")
                await browser.run(tab, embedding(page, what))
        posts, frames = page.statuses("POST", "/change"), page.statuses("GET", "/frame-me")
        assert ({status for status, _ in posts}, len(posts)) == ({403}, 6)
        assert ({status for status, _ in frames}, len(frames)) == ({403}, 6)
        # Where the browser sent the cookie, it was the page that refused; and it did send it.
        assert (True in {had for _, had in posts}, page.changed) == (True, [])


async def test_a_name_that_was_pointed_at_this_machine_sees_nothing(settings: Settings) -> None:
    async with served(settings) as page, chromium() as browser:
        port = page.origin.rpartition(":")[2]
        await log_in(browser, page)
        for path in ("/logged-out", f"/?key={page.access.secret}", "/decide/x"):
            tab, _ = await browser.open(f"http://{EVIL}:{port}{path}")
            assert "FORBIDDEN" in await browser.run(tab, "document.body.innerText")
        assert await browser.run(tab, "fetch('/').then(r => r.status)") == 403
        posted = "fetch('/change', {method: 'POST', body: new URLSearchParams({what: 'attack'})}).then(r => r.status)"
        assert (await browser.run(tab, posted), page.changed) == (403, [])


async def test_the_link_leaves_no_trace_and_is_of_no_use_to_another_page(settings: Settings) -> None:
    async with served(settings) as page, attacker() as port, chromium() as browser:
        tab = await log_in(browser, page)
        history = await (await tab.context.new_cdp_session(tab)).send("Page.getNavigationHistory")
        assert page.access.secret not in json.dumps(history)
        assert await browser.run(tab, "document.referrer") == ""
        assert await browser.run(tab, "document.cookie") == ""  # HttpOnly
        await browser.run(tab, f"location.href = 'http://{HOST}:{port}/next'")
        await until(
            lambda: browser.run(tab, "location.pathname == '/next' && document.readyState == 'complete'"), "left"
        )
        assert await browser.run(tab, "document.referrer") == ""


@pytest.mark.parametrize("name", NAMES)
async def test_a_window_that_was_opened_by_another_page_is_out_of_its_reach(settings: Settings, name: str) -> None:
    async with served(settings) as page, attacker() as port, chromium() as browser:
        await log_in(browser, page)
        tab, _ = await browser.open(f"http://{name}:{port}/")
        count = len(page.came)
        opening = {"expression": f"w = open('{page.origin}/logged-out')", "userGesture": True}
        await (await tab.context.new_cdp_session(tab)).send("Runtime.evaluate", opening)
        await until(lambda: len(page.came) > count, "the window is open")
        await until(lambda: browser.run(tab, "w.closed"), "Cross-Origin-Opener-Policy cuts it off")
