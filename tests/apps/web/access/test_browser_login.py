"""A login in a real Chromium: to the issuer and back, with cookies as browsers send them, and out again."""

from __future__ import annotations

import re
import socket

import pytest
from playwright.async_api import Browser, expect

from plansurvive.apps.web.common.service import Service
from plansurvive.client.access import access_for
from plansurvive.runtime.server import HOST
from plansurvive.runtime.settings import Settings
from tests.apps.web.access.issuer import CLIENT, serving
from tests.apps.web.access.serving import on_socket
from tests.apps.web.browser import opened, watch
from tests.apps.web.page_client import pages_of

pytestmark = pytest.mark.slow


@pytest.mark.sampled
async def test_a_person_logs_in_works_and_logs_out(chromium: Browser, settings: Settings) -> None:
    with socket.create_server((HOST, 0)) as listening:
        url = f"http://{HOST}:{listening.getsockname()[1]}"
        async with serving() as issuer, opened(chromium) as tab:
            given = settings.with_flags(
                web_url=url, web_oidc_issuer=issuer.url, web_oidc_client_id=CLIENT, web_roles="*=operator"
            )
            app = pages_of(Service(given, {}, access_for(given, {}, "", "")))
            async with on_socket(app, listening):
                seen = watch(tab)
                await tab.goto(f"{url}/start?a=1")
                await expect(tab).to_have_url(re.compile(r"/start\?a=1$"))
                await expect(tab.locator(".person:visible")).to_have_text("ann@example.org")
                # From a link in a message: another site opens the page, and the session is still there.
                await tab.goto("about:blank")
                await tab.evaluate(f"location.href = '{url}/logged-out'")
                await tab.wait_for_url(f"{url}/logged-out")
                await tab.goto(f"{url}/start")
                await expect(tab.locator(".person:visible")).to_have_text("ann@example.org")
                assert sum("/authorize" in request.url for request in seen.requests) == 1
                await tab.get_by_role("button", name="Log out").click()
                await expect(tab.get_by_role("heading", name="You are logged out")).to_be_visible()
                await tab.goto(f"{url}/start")
                await expect(tab.locator(".person:visible")).to_have_text(
                    "ann@example.org"
                )  # the issuer still knows her
                assert sum("/authorize" in request.url for request in seen.requests) == 2
                assert [each for each in seen.complaints if "Content Security Policy" in each] == []
