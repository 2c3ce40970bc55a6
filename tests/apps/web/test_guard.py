"""Who gets in: those with the link, from the page itself; and what the browser is told to forbid."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest
from temporalio.client import Client

from plansurvive.client.access.link import fresh_secret
from plansurvive.runtime.settings import Settings
from tests.apps.web.page_client import HOST, ORIGIN, SECRET, browsing, secret_link, service_for


async def test_without_the_link_every_page_is_refused(settings: Settings, temporal_client: Client) -> None:
    async with browsing(service_for(settings, temporal_client), inside=False) as browser:
        full = "Open the full link that <code>plan web</code> printed"
        each = "each start of <code>plan web</code> makes a new secret."
        other = f"The secret of this link is not, or no longer, that of this page. {full} at its last start; {each}"
        none = f"You are not logged in. {full}, with its secret; {each}"
        for url in ("/", "/plans/x", "/inbox/count", "/?key=wrong", "/?key="):
            answer = await browser.get(url)
            assert answer.status_code == 403
            assert (other if "key" in url else none) in answer.text
            assert "set-cookie" not in answer.headers


@pytest.mark.slow
@pytest.mark.sampled
async def test_the_link_becomes_a_cookie_and_leaves_the_address(settings: Settings, temporal_client: Client) -> None:
    async with browsing(service_for(settings, temporal_client), inside=False) as browser:
        entered = await browser.get("/", params={"key": SECRET, "q": '"><script>'})
        cookie = entered.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert SECRET not in entered.text + cookie
        assert "<script>" not in entered.text
        assert (await browser.get("/")).status_code == 200


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example:7243"},
        {"Host": "127.0.0.1:9999"},
        {"Host": "localhost.evil.example"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9999"},
    ],
)
async def test_a_request_of_another_host_or_origin_is_refused_even_with_the_cookie(
    settings: Settings, temporal_client: Client, headers: dict[str, str]
) -> None:
    async with browsing(service_for(settings, temporal_client)) as browser:
        answer = await browser.get("/", headers=headers)
        assert answer.status_code == 403
        why = "not the address of the page" if "Host" in headers else "does not come from the page itself"
        assert why in answer.text


async def test_a_cookie_that_was_not_given_out_is_refused(settings: Settings, temporal_client: Client) -> None:
    service = service_for(settings, temporal_client)
    good = secret_link(service).new_session()
    async with browsing(service, inside=False) as browser:
        for cookie in (good[:-1], "." + good, good + "x", "x", good.swapcase()):
            answer = await browser.get("/", headers={"Cookie": f"{service.access.cookie}={cookie}"})
            assert answer.status_code == 403
            assert "Your session has ended. Open the full link" in answer.text
        assert (await browser.get("/", headers={"Cookie": f"{service.access.cookie}={good}"})).status_code == 200


async def test_every_answer_tells_browsers_to_run_and_load_only_what_is_ours(
    settings: Settings, temporal_client: Client
) -> None:
    async with browsing(service_for(settings, temporal_client)) as browser:
        for url in ("/", "/nothing", "/static/x/style.css"):
            headers = (await browser.get(url)).headers
            policy = headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert headers["x-frame-options"] == "DENY"
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["referrer-policy"] == "same-origin"


@pytest.mark.slow
@pytest.mark.sampled
async def test_pages_have_no_inline_script_or_style_which_the_policy_would_block(
    settings: Settings, temporal_client: Client
) -> None:
    async with browsing(service_for(settings, temporal_client)) as browser:
        text = (await browser.get("/")).text
        assert not re.search(r"<style|<[a-z][^<>]*\s(?:style|on[a-z]+)=|<script(?![^>]*\ssrc=)", text)
        assert not re.search(r"(?:src|href)=.(?:https?:)?//", text)


async def test_static_files_are_kept_for_ever_under_their_digest_only(
    settings: Settings, temporal_client: Client
) -> None:
    async with browsing(service_for(settings, temporal_client), inside=False) as browser:
        page = await browser.get("/")
        (style,) = re.findall(r'href="(/static/[0-9a-f]{16}/style\.css)"', page.text)
        current = await browser.get(style)
        assert "immutable" in current.headers["cache-control"]
        assert current.headers["content-type"].startswith("text/css")
        old = await browser.get("/static/0000000000000000/style.css")
        assert old.headers["cache-control"] == "no-cache"
        for name in ("../app.py", "%2e%2e/app.py", "nothing.css"):
            answer = await browser.get(f"/static/x/{name}")
            assert answer.status_code in (403, 404)


def test_the_secret_is_new_at_each_start_and_for_this_user_only(tmp_path: Path) -> None:
    first = fresh_secret(tmp_path)
    assert len(first) >= 32
    assert fresh_secret(tmp_path) != first
    assert (tmp_path / "web.key").stat().st_mode & 0o077 == 0


async def test_only_http_is_spoken(settings: Settings, temporal_client: Client) -> None:
    async with browsing(service_for(settings, temporal_client)) as browser:
        answer = await browser.request("DELETE", "/")
        assert answer.status_code == 405
        assert isinstance(answer, httpx.Response)
    assert f"http://{HOST}" == ORIGIN
