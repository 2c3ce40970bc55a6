"""The browser that tests of the web page use: what it must see in a page, tried on pages with and without faults."""

from __future__ import annotations

from pathlib import Path

from playwright.async_api import Browser
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from tests.apps.web.browser import (
    DESK,
    PHONE,
    everywhere,
    obscured,
    opened,
    overflow,
    problems,
    screenshot,
    served,
    watch,
)

CSP = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'"
_HEAD = "<!doctype html><html lang=en><title>A page</title><link rel=icon href='data:,'><script src=/own.js></script>"
PAGES = {
    "/sound": f"{_HEAD}<main><h1>Sound</h1><label>Name <input></label></main>",
    "/faulty": f"{_HEAD}<main><h1>Faulty</h1><input><img src=/none.png><p>{'wide' * 400}</p></main>",
    "/night": f"{_HEAD}<link rel=stylesheet href=/night.css><main><h1>Night</h1><p>Hard to read in the dark</p></main>",
    "/asking": f"{_HEAD}<main><h1>Asks</h1><script src=https://elsewhere.example/x.js></script></main>",
    "/unsafe": f"{_HEAD}<main><h1>Unsafe</h1><script>document.title = 'ran'</script></main>",
}


async def _page(request: Request) -> Response:
    if request.url.path == "/own.js":
        return Response("'x';" * 100, media_type="text/javascript")
    if request.url.path == "/night.css":
        dark = "@media (prefers-color-scheme: dark) { body { background: #111; color: #333; } }"
        return Response(dark, media_type="text/css")
    return HTMLResponse(PAGES[request.url.path], headers={"Content-Security-Policy": CSP})


APPLICATION = Starlette(routes=[Route(path, _page) for path in (*PAGES, "/own.js", "/night.css")])


async def test_a_sound_page_has_nothing_to_report(chromium: Browser, tmp_path: Path) -> None:
    async with served(APPLICATION) as origin, opened(chromium, PHONE, dark=True) as page:
        seen = watch(page)
        await page.goto(f"{origin}/sound")
        assert await problems(page) == []
        assert (seen.foreign(origin), seen.complaints, await overflow(page)) == ([], [], 0)
        assert await seen.script_bytes() == {f"{origin}/own.js": 400}
        assert (await screenshot(page, tmp_path / "sound.png")).read_bytes().startswith(b"\x89PNG")


SCROLLED = """() => {
    const head = document.createElement("header"), nav = document.createElement("nav");
    head.style.cssText = "position: sticky; top: 0; height: 60px; z-index: 5; background: white";
    head.innerHTML = "<a href=/asking>Asking</a>";
    head.firstChild.style.cssText = "display: block; height: 60px";
    nav.innerHTML = "<a href=/sound>Sound</a><a href=/faulty>Faulty</a>";
    for (const link of nav.children) link.style.cssText = "display: inline-block; height: 30px; width: 90px";
    document.body.prepend(head, nav);
    document.querySelector("main").style.minHeight = "3000px";
    scrollTo(0, 24);
}"""


async def test_a_link_that_has_scrolled_under_the_head_of_the_page_is_no_problem(chromium: Browser) -> None:
    async with served(APPLICATION) as origin, opened(chromium, PHONE) as page:
        await page.goto(f"{origin}/sound")
        await page.evaluate(SCROLLED)
        assert await problems(page) == []


BUTTONS = """() => {
    const buttons = document.createElement("div"), list = document.createElement("nav");
    buttons.style.cssText = "position: sticky; bottom: 0; height: 120px; z-index: 2; background: white";
    list.innerHTML = Array.from({length: 40}, (_, i) => `<p><a href=/sound>Item ${i}</a></p>`).join("");
    for (const link of list.querySelectorAll("a")) link.style.cssText = "display: inline-block; height: 30px";
    document.querySelector("main").append(list, buttons);
}"""


async def test_a_link_below_buttons_that_stick_is_no_problem_unless_the_keyboard_cannot_reach_it(
    chromium: Browser,
) -> None:
    async with served(APPLICATION) as origin, opened(chromium, PHONE) as page:
        await page.goto(f"{origin}/sound")
        await page.evaluate(BUTTONS)
        assert await problems(page) == []
        assert await obscured(page) != [], "the control"
        await page.evaluate("document.documentElement.style.scrollPaddingBottom = '130px'")
        await page.evaluate("scrollTo(0, 0)")
        assert await obscured(page) == []


async def test_what_a_screen_reader_cannot_read_is_reported(chromium: Browser) -> None:
    async with served(APPLICATION) as origin, opened(chromium) as page:
        await page.goto(f"{origin}/faulty")
        found = await problems(page)
        assert all(any(fault in problem for problem in found) for fault in (": label: ", ": image-alt: ")), found
        assert await overflow(page) > 0


async def test_what_is_wrong_in_one_scheme_or_size_is_reported_with_where(chromium: Browser) -> None:
    async with served(APPLICATION) as origin, opened(chromium) as page:
        await page.goto(f"{origin}/sound")
        assert await everywhere(page, "/sound") == []
        await page.goto(f"{origin}/night")
        found = await everywhere(page, "/night")
        assert {each.partition(": ")[0] for each in found} == {"/night 390 dark", "/night 1280 dark"}
        assert all("color-contrast" in each for each in found)
        await page.evaluate("document.body.style.minWidth = '600px'")
        await page.evaluate("document.querySelector('p').style.width = '30px'")
        assert [each for each in await everywhere(page, "/night") if "squeezed: Hard to read in the dark" in each]
        wide = [each for each in await everywhere(page, "/night") if each.endswith(" pixels too wide")]
        assert [each.partition(": ")[0] for each in wide] == ["/night 390"]


async def test_a_request_to_another_origin_and_a_breach_of_the_policy_are_seen(
    chromium: Browser,
) -> None:
    async with served(APPLICATION) as origin, opened(chromium, DESK) as page:
        seen = watch(page)
        await page.goto(f"{origin}/asking")
        assert any("elsewhere.example" in said for said in (*seen.foreign(origin), *seen.complaints))
        seen.complaints.clear()
        await page.goto(f"{origin}/unsafe")
        assert any("Content Security Policy" in said for said in seen.complaints)
        assert await page.title() == "A page"
