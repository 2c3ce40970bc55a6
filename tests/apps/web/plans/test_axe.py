"""Every page about a plan, in every state of it, at a phone and a desk, in light and dark: axe-core finds nothing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.async_api import Browser, Page, expect

from plansurvive.apps.web.common.service import Service
from plansurvive.client.access import SecretLink
from plansurvive.runtime.connect import Connection, Origin
from plansurvive.runtime.settings import Settings
from tests.apps.web.browser import PHONE, everywhere, opened, served_at, watch
from tests.apps.web.page_client import SECRET, pages_of
from tests.apps.web.plans.states import STATES, in_state
from tests.apps.web.plans.test_every_state import PLAN, steps_of
from tests.kit.shown import shown
from tests.nightly import sampled


def pages_about(plan: str, asking: list[str], others: list[str]) -> list[str]:
    """The addresses of a plan's pages, and of those of its steps: some that ask, and some others."""
    at = f"/plans/{plan}"
    steps = {each: quote(each, safe="") for each in (*asking, *others)}
    paths = [f"{at}{each}" for each in PLAN if each not in ("/list", "/decisions")]
    paths += [f"{at}/{each}" for each in ("resume", "rerun")]
    paths += [f"{at}/steps/{steps[each]}" for each in dict.fromkeys([*asking[:1], *others[:2]])]
    paths += [f"{at}/steps/{steps[each]}/decide" for each in asking[:2]]
    return [*paths, *(f"{at}/{page}/{steps[others[0]]}" for page in ("inside", "draft/steps"))]


@pytest.mark.slow
@pytest.mark.parametrize("name", sampled(STATES, 0, in_ci=1))
async def test_every_page_about_a_plan_in_this_state_can_be_read_by_everybody(
    name: str, chromium: Browser, settings: Settings, tmp_path: Path
) -> None:
    async with shown(tmp_path / "values") as plans:
        run = in_state(name)
        await plans.show(name, run)
        connection = Connection(plans.client, "tests", Origin.CONFIGURED)

        def page_of(origin: str) -> Any:
            return pages_of(
                Service(settings, {}, SecretLink(SECRET, origin.removeprefix("http://"), "ann"), connection)
            )

        async with served_at(page_of) as origin, opened(chromium, PHONE) as page:
            await page.goto(f"{origin}/tools?key={SECRET}")
            await page.wait_for_url(f"{origin}/tools")
            found = []
            asking = [each for each, state in run.steps.items() if state.awaiting]
            for path in pages_about(name, asking, list(steps_of(run).values())):
                seen = watch(page)
                answer = await page.goto(f"{origin}{path}")
                assert answer is not None
                assert answer.status < 500, path
                await expect(page.locator("main h1, main h2").first).to_be_visible()
                found += await everywhere(page, path)
                assert seen.foreign(origin) == [], path
                await is_compact(page)
            assert found == []
            if name == "rolling-back":
                await page.goto(f"{origin}/plans/{name}")
                await expect(page.get_by_text("The plan is rolling back: ")).to_be_visible()
            if name == "for-its-turn":
                await page.goto(f"{origin}/plans/{name}")
                await expect(page.get_by_text(re.compile(r", since 20 Jan 2026, \d\d:30\."))).to_be_visible()


async def is_compact(page: Page) -> None:
    """Filters take two rows at most, and ids of steps are not squeezed into columns of single letters."""
    for name, most in ((".filters", 110), (".step .line .name", 60)):
        for each in await page.locator(name).all():
            box = await each.bounding_box()
            assert box is None or box["height"] <= most, (page.url, name)
