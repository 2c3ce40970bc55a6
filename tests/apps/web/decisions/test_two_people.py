"""Two people with logins of their own, in two browsers, approve one call of a plan: it is made after the second."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Browser, Page
from temporalio.client import Client

from plansurvive.activities.tools.registry import load_tools
from plansurvive.apps.web.decisions.routes import decision_url
from plansurvive.client import runs
from plansurvive.features.policy.policy_file import FILE
from plansurvive.features.signing.own_keys import make
from plansurvive.plans.run import Options
from plansurvive.runtime.server import HOST
from plansurvive.runtime.settings import Settings
from plansurvive.worker import build
from tests.apps.mcp.http.reached import reached
from tests.apps.web.browser import DESK, PHONE, everywhere, opened
from tests.kit.desks import signing
from tests.kit.driving import Started
from tests.kit.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.uses("policy", "signing")]

LOGINS = {
    "PLANS_WEB_PROXY_HEADER": "X-User", "PLANS_WEB_PROXY_FROM": HOST, "PLANS_WEB_ROLES": "@example.org=approver",
}  # fmt: skip
RULE = """
[[rule]]
name = "release by two"
tool = "write_file"
decide = "ask"
by = ["group:release"]
count = 2
expires = "4h"
[people]
ann = {logins = ["ann@example.org"]}
bob = {logins = ["bob@example.org"]}
cara = {logins = ["cara@example.org"]}
[groups]
release = ["ann", "bob"]
"""
STEP = {
    "id": "release", "tool": "write_file", "description": "Write the notes of the release",
    "args": {"path": "notes.md", "content": "# 4.2\n\nTwo people have read this.\n"},
}  # fmt: skip


async def as_somebody(page: Page, login: str, url: str) -> None:
    """Open an address in the browser of somebody who has logged in."""
    await page.context.set_extra_http_headers({"X-User": login})
    await page.goto(url)


async def test_one_of_two_is_shown_to_both_and_the_second_has_the_call_made(
    temporal_client: Client, settings: Settings, environ: dict[str, str], workspace: Path, chromium: Browser,
) -> None:  # fmt: skip
    team = make(settings, "page", "team")[0]
    (settings.state_dir / FILE).write_text(f"{RULE}[pages]\n{team.line}\n")
    options = Options(workspace=str(workspace), by="dan")
    async with build(temporal_client, settings, load_tools(()), indexed=True):
        begun = await runs.start(
            temporal_client, {"title": "Release 4.2", "steps": [STEP]}, options=options, queue=settings.task_queue
        )
        plan = Started(temporal_client, begun.workflow_id)
        await plan.until_asked("release")
        here = signing(temporal_client, settings)
        async with (
            reached({**environ, **LOGINS}, here) as server,
            opened(chromium, PHONE) as first,
            opened(chromium, DESK) as second,
            opened(chromium, DESK) as third,
        ):
            decide = f"{server.origin}{decision_url(begun.plan_id, 'release')}"
            await as_somebody(first, "ann@example.org", decide)
            assert "0 of 2; ann and bob must approve" in await first.locator(".why").inner_text()
            assert await everywhere(first, "before") == []
            await first.get_by_role("button", name="Approve release").click()
            await until(lambda: first.get_by_text("1 of 2, by ann at").first.is_visible(), "ann sees one of two")
            assert await everywhere(first, "one-of-two") == []
            assert not (workspace / "notes.md").exists()
            assert await first.get_by_text(
                "You cannot approve this: you have approved it; others must as well."
            ).is_visible()
            assert await first.get_by_role("button", name="Approve release").count() == 0
            await first.get_by_role("button", name="Withdraw mine about release").click()
            await until(lambda: first.get_by_text("was withdrawn").first.is_visible(), "ann has taken it back")
            await as_somebody(first, "ann@example.org", decide)
            await first.get_by_role("button", name="Approve release").click()
            await until(lambda: first.get_by_text("1 of 2, by ann at").first.is_visible(), "ann has approved again")

            await as_somebody(third, "cara@example.org", decide)
            assert await third.get_by_text("You cannot approve this: rule").first.is_visible()
            assert await third.get_by_role("button", name="Approve release").count() == 0
            assert await third.get_by_role("button", name="Deny release").is_visible()
            assert await everywhere(third, "may-not") == []

            await as_somebody(second, "bob@example.org", decide)
            text = await second.locator(".why").inner_text()
            assert "1 of 2, by ann at" in text
            assert "; bob must approve" in text
            assert await everywhere(second, "second") == []
            await second.get_by_role("button", name="Approve release").click()
            assert (await plan.ended())["status"] == "completed"
            await until(lambda: second.get_by_text("completed").first.is_visible(), "bob sees that it is done")
            assert await everywhere(second, "done") == []
    assert (workspace / "notes.md").read_text() == STEP["args"]["content"]  # type: ignore[index]
