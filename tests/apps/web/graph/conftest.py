"""A page with nothing but the graph and the time line of a plan, served with the headers of the real one."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from playwright.async_api import Browser, Page, ViewportSize
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from plansurvive.apps.web.common import assets
from plansurvive.apps.web.common.rendering import environment
from plansurvive.apps.web.graph.gantt import TimeLine
from plansurvive.client.access.browser import HEADERS
from tests.apps.web.browser import DESK, Watch, opened, served, watch
from tests.kit.waiting import until

PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A plan</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="{{ asset('icon.svg') }}"><link rel="stylesheet" href="{{ asset('style.css') }}">
<script src="{{ asset('vendor/htmx.min.js') }}" defer></script>
<script src="{{ asset('vendor/hx-sse.min.js') }}" defer></script>
<script src="{{ asset('page.js') }}" defer></script></head><body><main id="main"><h1>A plan</h1>
{% include "_graph.html" %}{% if time_line %}{% include "_gantt.html" %}{% endif %}
<table id="steps"><thead><tr><th>Step</th></tr></thead>
<tbody><tr><td>a</td></tr></tbody></table></main></body></html>"""
_COUNTING = "document.addEventListener('graph-drawn', () => { window.drawn = (window.drawn || 0) + 1; });"


class Shown:
    """A page in a browser, with what it asked for. `document` may be changed: the page asks for it again."""

    def __init__(self, page: Page, seen: Watch, origin: str, document: dict[str, Any]) -> None:
        self.page, self.seen, self.origin, self.document = page, seen, origin, document

    async def drawn(self, times: int = 1) -> None:
        """Wait until the graph was laid out and drawn so often."""
        await until(lambda: self.page.evaluate(f"window.drawn >= {times}"), f"the graph is drawn {times} times")

    async def patch(self, seq: int, **steps: str) -> None:
        """What htmx does with a live event of the kind `steps`."""
        data = json.dumps(json.dumps({"seq": seq, "steps": steps}))
        await self.page.evaluate(f"document.dispatchEvent(new CustomEvent('steps', {{detail: {{data: {data}}}}}))")


Show = Callable[..., AbstractAsyncContextManager[Shown]]


@pytest.fixture
def show(chromium: Browser) -> Show:
    """Open a page with this graph: `show(document, size=PHONE, dark=True)`."""

    @asynccontextmanager
    async def shown(
        document: dict[str, Any], size: ViewportSize = DESK, *, line: TimeLine | None = None, **options: bool
    ) -> AsyncIterator[Shown]:
        text = environment().from_string(PAGE).render(plan="p", time_line=line, now=datetime.now(UTC))

        async def answer(request: Request) -> Response:
            if request.url.path.endswith("graph.json"):
                return JSONResponse(document, headers={**HEADERS, "ETag": f'"{document["seq"]}"'})
            if request.url.path.endswith("gantt"):
                found = environment().get_template("_gantt.html").render(plan="p", time_line=line) if line else ""
                return HTMLResponse(found, 200 if line else 204, headers=HEADERS)
            return HTMLResponse(text, headers=HEADERS)

        paths = ("/plans/p", "/plans/p/graph.json", "/plans/p/gantt")
        routes = [*assets.routes, *(Route(path, answer) for path in paths)]
        async with served(Starlette(routes=routes)) as origin, opened(chromium, size, **options) as page:
            seen = watch(page)
            await page.add_init_script(_COUNTING)
            await page.goto(f"{origin}/plans/p")
            found = Shown(page, seen, origin, document)
            if options.get("scripts", True):
                await found.drawn()
            yield found

    return shown
