"""Forms: the token of the session, sizes, and where the answer leads."""

from __future__ import annotations

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from plansurvive.apps.web.common.service import Service
from plansurvive.client.access.forms import MAX_BYTES, BadForm, form_of, text_of
from plansurvive.client.page.pages import done
from plansurvive.runtime.settings import Settings
from tests.apps.web.page_client import ORIGIN, csrf_of, pages_of, secret_link, service_for


async def _echo(request: Request) -> Response:
    form = await form_of(request)
    upload = form.get("file")
    if upload is not None and not isinstance(upload, str):
        return PlainTextResponse(await upload.read())
    return done(request, text_of(form, "to", "/"), text_of(form, "said"))


def _app(service: Service) -> Starlette:
    app = pages_of(service)
    app.router.routes.insert(0, Route("/echo", _echo, methods=["POST"]))
    return app


@pytest.fixture
def service(settings: Settings) -> Service:
    """A service that needs no server."""
    return service_for(settings, None)


@pytest.fixture
async def browser(service: Service) -> httpx.AsyncClient:
    """A browser with a session."""
    transport = httpx.ASGITransport(_app(service), raise_app_exceptions=False)
    browser = httpx.AsyncClient(transport=transport, base_url=ORIGIN, headers={"Origin": ORIGIN})
    await browser.get("/", params={"key": secret_link(service).secret})
    return browser


async def test_a_form_with_the_token_of_its_session_is_read(browser: httpx.AsyncClient, service: Service) -> None:
    token = csrf_of(browser, service)
    answer = await browser.post("/echo", data={"csrf": token, "to": "/plans/a%5Bb%5D", "said": "Approved <b>"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/plans/a%5Bb%5D")
    page = await browser.get("/nothing")
    assert "Approved &lt;b&gt;" in page.text
    assert "Approved" not in (await browser.get("/nothing")).text
    upload = await browser.post("/echo", data={"csrf": token}, files={"file": ("plan.yaml", b"steps: []")})
    assert upload.text == "steps: []"


async def test_a_form_without_the_token_or_with_another_sessions_is_refused(
    browser: httpx.AsyncClient, service: Service
) -> None:
    other = service.access.csrf(secret_link(service).new_session())
    for data in ({}, {"csrf": ""}, {"csrf": other}, {"csrf": "ä"}):
        answer = await browser.post("/echo", data={"to": "/", **data})
        assert answer.status_code == 400, data
        assert BadForm.code in answer.text


async def test_a_form_from_another_site_is_refused_even_with_the_token(
    browser: httpx.AsyncClient, service: Service
) -> None:
    for headers in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        answer = await browser.post("/echo", data={"csrf": csrf_of(browser, service)}, headers=headers)
        assert answer.status_code == 403


async def test_a_form_that_is_too_large_or_no_form_is_refused(browser: httpx.AsyncClient, service: Service) -> None:
    token = csrf_of(browser, service)
    for content, kind in (
        (f"csrf={token}&x={'x' * MAX_BYTES}", "application/x-www-form-urlencoded"),
        (f"csrf={token}&" + "&".join(["a=1"] * 3_000), "application/x-www-form-urlencoded"),
        (b"csrf=\xff\xfe", "application/x-www-form-urlencoded"),
        ('{"csrf": 1}', "application/json"),
        ("--x", "multipart/form-data; boundary=y"),
    ):
        answer = await browser.post("/echo", content=content, headers={"Content-Type": kind})
        assert answer.status_code == 400, kind
        assert BadForm.code in answer.text


@pytest.mark.parametrize("url", ["https://evil.example/", "//evil.example", "/\\evil.example", "evil", "javascript:1"])
async def test_the_answer_never_leads_to_another_site(browser: httpx.AsyncClient, service: Service, url: str) -> None:
    answer = await browser.post("/echo", data={"csrf": csrf_of(browser, service), "to": url})
    assert answer.headers["location"] == "/"
