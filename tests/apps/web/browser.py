"""A real Chromium for tests of the web page: pages at the sizes of a phone and a desk, and what they must keep to.

The fixture `chromium` is known in this folder; elsewhere a conftest.py imports it, as the one here does.

    from tests.apps.web.browser import PHONE, opened, problems, served, watch

    async def test_it_is_readable(chromium: Browser) -> None:
        async with served(application(service)) as origin, opened(chromium, PHONE, dark=True) as page:
            seen = watch(page)
            await page.goto(origin)
            assert await problems(page) == [] and seen.foreign(origin) == [] and seen.complaints == []

On a page with a strict policy, wait by `until(lambda: page.evaluate(...))` or a locator: `wait_for_function` uses eval.
Playwright drives the distribution's browser: it downloads none. Nothing but 127.0.0.1 has a name here, so that a page
that asks for anything else fails, and is seen to ask.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from pathlib import Path
from typing import Literal

import pytest_asyncio
import uvicorn
from playwright.async_api import Browser, Error, Page, Request, ViewportSize, async_playwright
from starlette.types import ASGIApp

from plansurvive.runtime.server import HOST
from tests.kit.lacking import end
from tests.kit.waiting import PATIENCE, until

DESK: ViewportSize = {"width": 1280, "height": 800}
PHONE: ViewportSize = {"width": 390, "height": 844}
SIZES = (PHONE, DESK)
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
SCRIPT_BUDGET = 200_000
"""Bytes of JavaScript, not compressed, that a page may load before anything is clicked."""
SERIOUS = ("serious", "critical")
"""Impacts of the problems that axe-core finds which no page may have."""
_AXE = Path(__file__).parent / "axe" / "axe.min.js"
_AXE_SHA256 = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"
_PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS = [
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    f"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE {HOST}",
]
_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@pytest_asyncio.fixture(scope="session")
async def chromium() -> AsyncIterator[Browser]:
    """One browser for all tests of a session. Ends the test if there is none on this machine."""
    program = next((found for name in _PROGRAMS if (found := shutil.which(name))), None)
    if program is None:
        end("chromium", "chromium is not installed", os.environ)
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=program, chromium_sandbox=False, args=_FLAGS)
        yield browser
        await browser.close()


@asynccontextmanager
async def opened(
    browser: Browser, size: ViewportSize = DESK, *, dark: bool = False, scripts: bool = True, still: bool = True
) -> AsyncIterator[Page]:
    """A page with cookies of its own. `scripts`: whether JavaScript runs; `still`: prefers reduced motion.

    A phone has a touch screen. No action waits longer than the tests' patience.
    """
    context = await browser.new_context(
        viewport=size,
        has_touch=size == PHONE,
        java_script_enabled=scripts,
        color_scheme="dark" if dark else "light",
        reduced_motion="reduce" if still else "no-preference",
    )
    context.set_default_timeout(PATIENCE * 1_000)
    try:
        yield await context.new_page()
    finally:
        await context.close()


class Watch:
    """What a page asked for, and what the browser complained about, since `watch` was called."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.complaints: list[str] = []
        """Uncaught errors of scripts, and console errors: breaches of the content security policy are among them."""

    def foreign(self, origin: str) -> list[str]:
        """The addresses asked for that are not of this origin; `data:` URLs leave nothing."""
        urls = (request.url for request in self.requests)
        return [url for url in urls if not url.startswith((f"{origin}/", "data:", "blob:")) and url != origin]

    async def script_bytes(self) -> dict[str, int]:
        """The size of each script that was loaded, by its path."""
        sizes: dict[str, int] = {}
        for request in self.requests:
            if request.resource_type != "script" and not request.url.endswith((".js", ".mjs")):
                continue
            response = await request.response()
            if response is not None and response.ok:
                sizes[request.url] = len(await response.body())
        return sizes


def watch(page: Page) -> Watch:
    """Note from now on what the page asks for and complains about."""
    seen = Watch()
    page.on("request", lambda request: seen.requests.append(request))
    page.on("pageerror", lambda error: seen.complaints.append(str(error)))
    page.on("console", lambda said: seen.complaints.append(said.text) if said.type == "error" else None)
    return seen


async def problems(page: Page) -> list[str]:
    """The serious problems of accessibility that axe-core finds (WCAG 2.2 AA and good practice), one sentence each.

    The page is at its top, and stays there, also where it follows a log; its head and the buttons of a decision do not
    stick. To axe-core, a link that is partly under them is too small to be touched, and people scroll it out.
    """
    cdp = await page.context.new_cdp_session(page)  # past the page's content security policy, which stays as it is
    stay = "scrollTo(0, 0); const all = Element.prototype, follow = all.scrollIntoView; all.scrollIntoView = () => {}"
    ask = f"axe.run(document, {json.dumps({'runOnly': _RULES, 'resultTypes': ['violations']})})"
    stay += "; const stuck = [...document.querySelectorAll('*')].filter(e => getComputedStyle(e).position === 'sticky')"
    stay += "; const were = stuck.map(each => each.style.position)"
    stay += "; for (const each of stuck) each.style.position = 'static'"
    again = "stuck.forEach((each, i) => { each.style.position = were[i] })"
    go_on = f"finally(() => {{ all.scrollIntoView = follow; {again} }})"
    wanted = "r.violations.map(v => [v.impact, v.id, v.help, v.nodes.map(n => [n.target.join(' '), n.failureSummary])])"
    expression = f"(() => {{ {stay}; return {ask}.then(r => {wanted}).{go_on} }})()"
    given = {"expression": f"{_axe()};\n{expression}", "awaitPromise": True, "returnByValue": True}
    try:
        answer = await cdp.send("Runtime.evaluate", given)
    except Error:  # the page has loaded itself anew meanwhile, as that of a draft does
        await page.wait_for_load_state()
        answer = await cdp.send("Runtime.evaluate", given)
    await cdp.detach()
    assert "exceptionDetails" not in answer, answer
    return [
        f"{impact}: {name}: {help_text}: {where}: {' '.join(why.split())}"
        for impact, name, help_text, nodes in answer["result"]["value"]
        for where, why in nodes
        if impact in SERIOUS
    ]


async def overflow(page: Page) -> int:
    """How many pixels wider the page is than the window: 0, or people have to scroll sideways."""
    return int(await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


async def obscured(page: Page) -> list[str]:
    """What is hidden below the page's head or the buttons of a decision when the keyboard comes to it (WCAG 2.4.11).

    Not the nodes of a graph: each step is in the list as well.
    """
    return list(
        await page.evaluate(
            """() => [...document.querySelectorAll('main a[href], main button, main summary')].filter(each => {
                if (!(each instanceof HTMLElement && each.checkVisibility())) return false;
                each.focus();
                const box = each.getBoundingClientRect();
                let above = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
                while (above && getComputedStyle(above).position !== 'sticky') above = above.parentElement;
                return above !== null && !above.contains(each);
            }).map(each => each.textContent.trim())"""
        )
    )


async def small(page: Page) -> list[str]:
    """Links and buttons that are lower than 24 pixels (WCAG 2.5.8); those within a sentence may be."""
    return list(
        await page.evaluate(
            """() => [...document.querySelectorAll('main a[href], main button, main summary')].filter(each => {
                if (!(each instanceof HTMLElement && each.checkVisibility())) return false;
                const box = each.getBoundingClientRect();
                return getComputedStyle(each).display !== 'inline' && box.width > 1 && box.height < 24;
            }).map(each => each.outerHTML.slice(0, 100))"""
        )
    )


async def squeezed(page: Page) -> list[str]:
    """Words that have so little room that they stand in a column of a few letters, three rows or more."""
    return list(
        await page.evaluate(
            """() => [...document.querySelectorAll('main *')].filter(each => {
                const text = each.textContent.trim();
                if (!(each instanceof HTMLElement && each.checkVisibility()) || each.children.length) return false;
                if (each.closest('.hidden')) return false;
                const box = each.getBoundingClientRect(), row = 1.3 * parseFloat(getComputedStyle(each).fontSize);
                return text.length > 4 && box.width > 1 && box.width < 48 && box.height > 3 * row;
            }).map(each => each.textContent.trim().slice(0, 100))"""
        )
    )


async def everywhere(page: Page, name: str) -> list[str]:
    """What is wrong with a page for people at a phone and at a desk, in light and in dark, each with where it is so.

    The page is loaded once; then the browser changes its window and scheme. The environment's PICTURES names a folder
    for a picture of each.
    """
    found = []
    for size in SIZES:
        await page.set_viewport_size(size)
        for scheme in SCHEMES:
            await page.emulate_media(color_scheme=scheme)
            where = f"{name} {size['width']} {scheme}"
            if folder := os.environ.get("PICTURES"):
                file = Path(folder) / f"{where.strip('/').replace('/', '~').replace(' ', '-')}.png"
                await page.evaluate("scrollTo(0, 0)")
                await screenshot(page, file, whole=True)
            found += [f"{where}: {problem}" for problem in await problems(page)]
        where = f"{name} {size['width']}"
        found += [f"{where}: {each} pixels too wide" for each in (await overflow(page),) if each]
        found += [f"{where}: too small: {each}" for each in await small(page)]
        found += [f"{where}: squeezed: {each}" for each in await squeezed(page)]
        found += [f"{where}: hidden from the keyboard: {each}" for each in await obscured(page)]
    return found


async def screenshot(page: Page, file: Path, *, whole: bool = False) -> Path:
    """A picture of the window, or of the whole page, as PNG."""
    file.parent.mkdir(parents=True, exist_ok=True)
    await page.screenshot(path=file, full_page=whole, animations="disabled", caret="hide")
    return file


@asynccontextmanager
async def served(application: ASGIApp) -> AsyncIterator[str]:
    """Serve an application in this process on a free port; gives its origin, as in `http://127.0.0.1:4711`."""
    async with served_at(lambda _: application) as origin:
        yield origin


@asynccontextmanager
async def served_at(made: Callable[[str], ASGIApp]) -> AsyncIterator[str]:
    """As `served`, for an application that has to know its origin."""
    with socket.socket() as listening:
        listening.bind((HOST, 0))
        origin = f"http://{HOST}:{listening.getsockname()[1]}"
        config = uvicorn.Config(made(origin), log_level="error", lifespan="auto", timeout_graceful_shutdown=1)
        server = _Server(config)
        task = asyncio.create_task(server.serve([listening]))
        try:
            await until(lambda: server.started or task.done(), "the application is served")
            yield origin
        finally:
            server.should_exit = True
            await task


class _Server(uvicorn.Server):
    """A server that leaves the signals of the process that runs the tests alone."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@cache
def _axe() -> str:
    text = _AXE.read_bytes()
    assert hashlib.sha256(text).hexdigest() == _AXE_SHA256, "not the axe-core that was reviewed"
    return text.decode()
