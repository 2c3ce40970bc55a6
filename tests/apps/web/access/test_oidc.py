"""Login with OpenID Connect, against an issuer over real HTTP: who gets in, and with which lies nobody does."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
import pytest_asyncio
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from plansurvive.apps.web.common.service import Service
from plansurvive.client.access import Role, needs, person_of
from plansurvive.client.access.choose import access_for
from plansurvive.client.access.forms import form_of
from plansurvive.client.access.login import OidcAccess
from plansurvive.client.access.provider import Provider
from plansurvive.runtime.settings import Settings
from tests.apps.web.access.issuer import (
    CLIENT,
    SECRET,
    Claims,
    Issuer,
    by_another_key,
    by_another_kind_of_key,
    by_client_secret,
    by_public_key,
    serving,
    unsigned,
)
from tests.apps.web.page_client import pages_of
from tests.nightly import sampled

URL = "https://plans.example"


@pytest_asyncio.fixture
async def issuer() -> AsyncIterator[Issuer]:
    async with serving() as found:
        yield found


async def _who(request: Request) -> Response:
    person = person_of(request)
    return JSONResponse({"name": person.name, "verified": person.verified, "role": max(person.roles).name})


@needs(Role.OPERATOR)
async def _start(request: Request) -> Response:
    await form_of(request)
    return JSONResponse({})


def service_of(issuer: Issuer, **given: str) -> Service:
    """A page whose people log in with this issuer."""
    environ = {
        "HOME": "/nonexistent", "PLANS_WEB_URL": URL, "PLANS_WEB_OIDC_ISSUER": issuer.url,
        "PLANS_WEB_OIDC_CLIENT_ID": CLIENT, "PLANS_WEB_OIDC_SECRET_ENV": "OF_CLIENT", **given,
    }  # fmt: skip
    settings = Settings.read(environ)
    return Service(settings, environ, access_for(settings, {"OF_CLIENT": SECRET}, "", "0.0.0.0:80"))


@asynccontextmanager
async def browsing(service: Service) -> AsyncIterator[httpx.AsyncClient]:
    """A browser that has not logged in."""
    app = pages_of(service)
    app.router.routes[:0] = [Route("/who", _who), Route("/start-it", _start, methods=["POST"])]
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=URL) as browser:
        yield browser


async def log_in(browser: httpx.AsyncClient, start: str = "/who") -> httpx.Response:
    """What the browser is answered when it comes back from the issuer."""
    begun = await browser.get(start)
    assert (begun.status_code, urlsplit(begun.headers["location"]).path) == (303, "/login"), begun.text
    return await browser.get(await at_issuer(browser, begun.headers["location"]))


async def at_issuer(browser: httpx.AsyncClient, login: str = "/login") -> str:
    """Where the issuer sends the browser after a login."""
    to_issuer = await browser.get(login)
    assert to_issuer.status_code == 303, to_issuer.text
    async with httpx.AsyncClient() as client:
        return str((await client.get(to_issuer.headers["location"])).headers["location"])


async def test_a_person_logs_in_and_returns_to_the_page_that_was_asked_for(issuer: Issuer) -> None:
    async with browsing(service_of(issuer, PLANS_WEB_ROLES="ann@example.org=approver")) as browser:
        done = await log_in(browser, "/who?a=1&b=%2F")
        assert (done.status_code, done.headers["location"]) == (303, "/who?a=1&b=%2F")
        session = next(each for each in done.headers.get_list("set-cookie") if each.startswith("__Host-plans="))
        assert {"HttpOnly", "Secure", "Path=/", "SameSite=lax"} <= set(session.split("; "))
        assert (await browser.get("/who")).json() == {"name": "ann@example.org", "verified": True, "role": "APPROVER"}
    assert issuer.secrets_seen == [f"{CLIENT}:client+secret"]  # RFC 6749, 2.3.1


async def test_somebody_without_a_role_gets_no_session(issuer: Issuer) -> None:
    async with browsing(service_of(issuer, PLANS_WEB_ROLES="*=none,bob@example.org=operator")) as browser:
        done = await log_in(browser)
        assert (done.status_code, "ann@example.org is not allowed to use this page" in done.text) == (403, True)
        assert (await browser.get("/who")).status_code == 303


async def test_a_role_that_is_taken_away_counts_at_once(issuer: Issuer, tmp_path: Path) -> None:
    roles = tmp_path / "web.toml"
    roles.write_text('[roles]\noperator = ["group:ops"]\n')
    issuer.claims |= {"groups": ["ops"]}
    async with browsing(service_of(issuer, PLANS_WEB_ROLES=str(roles))) as browser:
        await log_in(browser)
        assert (await browser.get("/who")).json()["role"] == "OPERATOR"
        roles.write_text('[roles]\nviewer = ["group:ops"]\n')
        assert (await browser.get("/who")).json()["role"] == "VIEWER"
        roles.write_text("[roles]\n")
        assert (await browser.get("/who")).status_code == 403


def _without(name: str) -> Callable[[Claims], Claims]:
    return lambda claims: {each: value for each, value in claims.items() if each != name}


def _with(**more: Any) -> Callable[[Claims], Claims]:
    return lambda claims: claims | more


LIES: dict[str, dict[str, Any]] = {
    "another nonce": {"change": _with(nonce="other")},
    "no nonce": {"change": _without("nonce")},
    "another audience": {"change": _with(aud="other")},
    "no audience": {"change": _without("aud")},
    "two audiences, of another party": {"change": _with(aud=[CLIENT, "other"], azp="other")},
    "two audiences, of no party": {"change": _with(aud=[CLIENT, "other"])},
    "another issuer": {"change": _with(iss="https://evil.example")},
    "expired": {"change": _with(exp=int(time.time()) - 600, iat=int(time.time()) - 900)},
    "never expires": {"change": _without("exp")},
    "of the future": {"change": _with(iat=int(time.time()) + 3_600, nbf=int(time.time()) + 3_600)},
    "no subject": {"change": _without("sub")},
    "unsigned": {"sign": unsigned},
    "signed by another key": {"sign": by_another_key},
    "signed by another kind of key": {"sign": by_another_kind_of_key},
    "signed with the public key": {"sign": by_public_key},
    "signed with the client secret": {"sign": by_client_secret},
    "no token": {"sign": lambda *_: "x.y.z"},
    "an address that is not verified": {"claims": {"email": "boss@example.org", "email_verified": False}},
    "no name": {"claims": {}},
    "a name of control characters": {"claims": {"email": "a\u202e\n@example.org"}},
    "a name that is not a text": {"claims": {"email": ["ann@example.org"]}},
}


@pytest.mark.parametrize("lie", sampled(LIES, 7))
async def test_a_token_that_is_not_what_it_should_be_lets_nobody_in(issuer: Issuer, lie: str) -> None:
    for name, value in LIES[lie].items():
        setattr(issuer, name, value)
    async with browsing(service_of(issuer, PLANS_WEB_ROLES="*=operator")) as browser:
        done = await log_in(browser)
        assert (done.status_code, "LOGIN_FAILED" in done.text) == (403, True), done.text
        assert "__Host-plans=" not in done.headers.get("set-cookie", "")
        assert (await browser.get("/who")).status_code == 303


@pytest.mark.slow
@pytest.mark.in_turn
async def test_an_answer_counts_in_the_browser_that_began_and_for_its_state_only(issuer: Issuer) -> None:
    service = service_of(issuer)
    async with browsing(service) as victim, browsing(service) as attacker:
        theirs = await at_issuer(attacker)
        for begins in (False, True):
            if begins:
                await victim.get("/login")
            done = await victim.get(theirs)
            assert (done.status_code, "LOGIN_FAILED" in done.text) == (403, True)
            assert (await victim.get("/who")).status_code == 303
        query = {name: values[0] for name, values in parse_qs(urlsplit(theirs).query).items()}
        for wrong in ({"state": "x"}, {"state": ""}, {"iss": "https://evil.example"}, {"error": "access_denied"}):
            assert (await attacker.get("/login/callback", params=query | wrong)).status_code == 403
        assert (await attacker.get(theirs)).status_code == 303  # control: unchanged, in its own browser


async def test_a_code_works_once(issuer: Issuer) -> None:
    async with browsing(service_of(issuer)) as browser:
        answer = await at_issuer(browser)
        kept = dict(browser.cookies)
        assert (await browser.get(answer)).status_code == 303
        again = await browser.get(answer)
        assert (again.status_code, "started in another browser" in again.text) == (403, True)
        browser.cookies.update(kept)
        replayed = await browser.get(answer)
        assert (replayed.status_code, "invalid_grant" in replayed.text) == (403, True)


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_session_is_made_at_login_and_ends_with_the_logout(issuer: Issuer) -> None:
    async with browsing(service_of(issuer, PLANS_WEB_ROLES="*=operator")) as browser:
        browser.cookies.set("__Host-plans", "chosen-by-an-attacker")
        assert (await browser.get("/who")).status_code == 303
        browser.cookies.clear()
        await log_in(browser)
        first = browser.cookies["__Host-plans"]
        assert first != "chosen-by-an-attacker"
        await log_in_again(browser)
        assert browser.cookies["__Host-plans"] != first
        csrf = csrf_on(await browser.get("/logged-in-nowhere"))
        headers, second = {"Origin": URL}, browser.cookies["__Host-plans"]
        assert (await browser.post("/logout", data={"csrf": "wrong"}, headers=headers)).status_code == 400
        assert (await browser.get("/logout")).status_code == 405
        out = await browser.post("/logout", data={"csrf": csrf}, headers=headers)
        assert (out.status_code, out.headers["location"]) == (303, "/logged-out")
        assert (await browser.get("/logged-out")).status_code == 200
        for old in (first, second):
            browser.cookies.set("__Host-plans", old, domain="plans.example")
            assert (await browser.get("/who")).status_code == 303


async def log_in_again(browser: httpx.AsyncClient) -> None:
    """A login while there is a session."""
    assert (await browser.get(await at_issuer(browser))).status_code == 303


def csrf_on(page: httpx.Response) -> str:
    """The token in a form of a page."""
    return page.text.partition('name="csrf" value="')[2].partition('"')[0]


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.parametrize(
    "to", ["https://evil.example", "//evil.example", "/\\evil.example", "/%0d%0aSet-Cookie:a=b\r\nX: y", "javascript:1"]
)
async def test_a_login_never_leads_to_another_site(issuer: Issuer, to: str) -> None:
    async with browsing(service_of(issuer)) as browser:
        begun = await browser.get("/login", params={"next": to})
        async with httpx.AsyncClient() as client:
            back = (await client.get(begun.headers["location"])).headers["location"]
        assert (await browser.get(back)).headers["location"] == "/"


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_new_key_of_the_issuer_is_fetched_and_an_unknown_one_asks_no_more(issuer: Issuer) -> None:
    service = service_of(issuer)
    assert isinstance(service.access, OidcAccess)
    now = [0.0]
    service.access.provider = Provider(issuer.url, CLIENT, SECRET, clock=lambda: now[0])
    async with browsing(service) as browser:
        await log_in(browser)
        issuer.rotate()
        now[0] += 60
        await log_in_again(browser)
        assert issuer.asked_for_keys == 2
        issuer.sign = by_another_key
        for _ in range(5):
            assert (await browser.get(await at_issuer(browser))).status_code == 403
        assert issuer.asked_for_keys == 2


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.parametrize(
    "metadata",
    [
        {"issuer": "https://other.example"},
        {"token_endpoint": "http://evil.example/token"},
        {"jwks_uri": "file:///etc/passwd"},
        {"jwks_uri": "http://169.254.169.254/keys"},
    ],
)
async def test_an_issuer_that_leads_elsewhere_without_tls_is_refused(issuer: Issuer, metadata: Claims) -> None:
    issuer.metadata = metadata
    async with browsing(service_of(issuer)) as browser:
        begun = await browser.get("/login")
        done = await browser.get(await at_issuer(browser)) if begun.status_code == 303 else begun
        assert (done.status_code, "LOGIN_FAILED" in done.text) == (403, True)


async def test_without_the_issuer_the_page_says_so(issuer: Issuer) -> None:
    issuer.metadata = {"issuer": 1}
    service = service_of(issuer)
    async with serving() as gone:
        absent = service_of(gone)
    for each, code in ((service, "LOGIN_FAILED"), (absent, "LOGIN_UNAVAILABLE")):
        async with browsing(each) as browser:
            assert code in (await browser.get("/login")).text


async def test_a_request_that_is_not_a_page_is_answered_not_redirected(issuer: Issuer) -> None:
    async with browsing(service_of(issuer)) as browser:
        for headers in ({"Sec-Fetch-Mode": "cors", "Sec-Fetch-Site": "same-origin"},):
            assert (await browser.get("/who", headers=headers)).status_code == 401
        posted = await browser.post("/start-it", headers={"Origin": URL})
        assert posted.status_code == 401
