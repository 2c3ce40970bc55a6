"""Pages of plans that wait, fail, roll back or were refused: axe-core finds nothing serious, and none is too wide."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.async_api import Browser, Page, expect

from plansurvive.apps.web.common.service import Service
from plansurvive.client.access import SecretLink
from plansurvive.plans.model import Problem
from plansurvive.plans.run import PlanStatus, Run
from plansurvive.runtime.connect import Connection, Origin
from plansurvive.runtime.settings import Settings
from tests.apps.web.browser import DESK, PHONE, obscured, opened, overflow, problems, served_at, small, watch
from tests.apps.web.page_client import SECRET, pages_of
from tests.client.test_every_view import snapshots
from tests.kit.shown import shown

REFUSAL = Problem(code="WORKSPACE_REFUSED", message="name another directory with `--workspace`", field="workspace")


def states() -> dict[str, Run]:
    """Plans by what they show: half way, rolling back, in `finally`; and one of each of the other statuses."""
    found = {run.closing.phase if run.closing else "running": run for run in snapshots()}
    for status in (PlanStatus.REVIEW, PlanStatus.PAUSED, PlanStatus.PARTIAL, PlanStatus.CANCELLED):
        found[status.value] = run = next(snapshots())
        run.status = status
    found["refused"] = refused = next(snapshots())
    refused.status, refused.problems, refused.stopped = PlanStatus.FAILED, [REFUSAL], "its worker refused it"
    return found


@pytest.mark.slow
@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_plans_in_every_state_can_be_read_by_everybody(
    size: Any, dark: bool, chromium: Browser, settings: Settings, tmp_path: Path
) -> None:
    async with shown(tmp_path / "values") as plans:
        known = states()
        for name, run in known.items():
            run.plan = run.plan.model_copy(update={"id": name, "title": f"A plan: {name}"})
            await plans.show(name, run)
        connection = Connection(plans.client, "tests", Origin.CONFIGURED)

        def page_of(origin: str) -> Any:
            return pages_of(
                Service(settings, {}, SecretLink(SECRET, origin.removeprefix("http://"), "ann"), connection)
            )

        async with served_at(page_of) as origin, opened(chromium, size, dark=dark) as page:
            await page.goto(f"{origin}/tools?key={SECRET}")
            await page.wait_for_url(f"{origin}/tools")
            for name, run in known.items():
                asking = next((each for each, state in run.steps.items() if state.awaiting), "")
                paths = [f"/plans/{name}", f"/plans/{name}/steps/{quote(asking, safe='')}"]
                paths += [f"/plans/{name}/draft"] * (name == "review")
                for path in paths:
                    seen = watch(page)
                    await page.goto(f"{origin}{path}")
                    await expect(page.locator("main h1, main h2").first).to_be_visible()
                    assert await problems(page) == [], path
                    assert await overflow(page) == 0, path
                    assert await small(page) == [], path
                    assert seen.foreign(origin) == [], path
                    await is_compact(page)
                    assert await obscured(page) == [], path
                if name == "rollback":
                    await page.goto(f"{origin}/plans/{name}")
                    await expect(page.get_by_text("The plan is rolling back: ")).to_be_visible()


async def is_compact(page: Page) -> None:
    """Filters take two rows at most, and ids of steps are not squeezed into columns of single letters."""
    for name, most in ((".filters", 110), (".step .line .name", 60)):
        for each in await page.locator(name).all():
            box = await each.bounding_box()
            assert box is None or box["height"] <= most, (page.url, name)
