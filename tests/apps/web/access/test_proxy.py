"""A trusted proxy names the person: from its own addresses only, once, with its secret if it has one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from plansurvive.apps.web.common.service import Service
from plansurvive.client.access import Role, access_for, needs, person_of
from plansurvive.client.access.forms import form_of
from plansurvive.runtime.settings import Settings
from tests.apps.web.page_client import pages_of

URL = "https://plans.example"
SECRET = "of-the-proxy"
ANN = {"X-User": "ann@example.org"}


async def _who(request: Request) -> Response:
    person = person_of(request)
    return JSONResponse({"name": person.name, "verified": person.verified, "role": max(person.roles).name})


@needs(Role.APPROVER)
async def _change(request: Request) -> Response:
    await form_of(request)
    return JSONResponse({})


@asynccontextmanager
async def proxied(address: str = "10.1.2.3", **given: str) -> AsyncIterator[httpx.AsyncClient]:
    """Somebody at an address, who sends what a proxy would send."""
    environ = {
        "HOME": "/nonexistent", "PLANS_WEB_URL": URL, "PLANS_WEB_PROXY_HEADER": "X-User",
        "PLANS_WEB_PROXY_GROUPS": "X-Groups", "PLANS_WEB_PROXY_FROM": "10.0.0.0/8, ::1",
        "PLANS_WEB_ROLES": "*=viewer,group:ops=operator", **given,
    }  # fmt: skip
    settings = Settings.read(environ)
    app = pages_of(Service(settings, environ, access_for(settings, environ, "", "0.0.0.0:80")))
    app.router.routes[:0] = [Route("/who", _who), Route("/change", _change, methods=["POST"])]
    transport = httpx.ASGITransport(app, raise_app_exceptions=False, client=(address, 1))
    async with httpx.AsyncClient(transport=transport, base_url=URL, headers={"Origin": URL}) as browser:
        yield browser


async def test_the_person_whom_the_proxy_names_is_known_with_the_role_of_the_rules() -> None:
    async with proxied() as proxy:
        assert (await proxy.get("/who", headers=ANN)).json() == {
            "name": "ann@example.org", "verified": True, "role": "VIEWER",
        }  # fmt: skip
        groups = ANN | {"X-Groups": "all, ops"}
        assert (await proxy.get("/who", headers=groups)).json()["role"] == "OPERATOR"
        assert (await proxy.get("/who")).status_code == 401


@pytest.mark.parametrize("address", ["192.168.0.1", "::2", "11.0.0.1", "testclient", ""])
async def test_the_header_is_refused_from_everywhere_else(address: str) -> None:
    async with proxied(address) as other:
        answer = await other.get("/who", headers=ANN)
        assert (answer.status_code, "only from the proxy" in answer.text) == (403, True)
        forwarded = {"X-Forwarded-For": "10.1.2.3", "Forwarded": "for=10.1.2.3", "X-Real-IP": "10.1.2.3"}
        assert (await other.get("/who", headers=ANN | forwarded)).status_code == 403
        assert (await other.get("/who")).status_code == 401


async def test_an_address_in_the_form_of_the_other_protocol_is_the_same() -> None:
    async with proxied("::ffff:10.1.2.3") as proxy:
        assert (await proxy.get("/who", headers=ANN)).status_code == 200


async def test_a_proxy_with_a_secret_must_send_it(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    async with proxied(PLANS_WEB_PROXY_SECRET_FILE=str(tmp_path / "secret")) as proxy:
        for given in ({}, {"X-Plans-Proxy-Secret": "wrong"}, {"X-Plans-Proxy-Secret": ""}):
            assert (await proxy.get("/who", headers=ANN | given)).status_code == 403
        twice = [*ANN.items(), ("X-Plans-Proxy-Secret", SECRET), ("X-Plans-Proxy-Secret", SECRET)]
        assert (await proxy.get("/who", headers=twice)).status_code == 403
        assert (await proxy.get("/who", headers=ANN | {"X-Plans-Proxy-Secret": SECRET})).status_code == 200


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize(
    "named",
    [
        [("X-User", "ann"), ("X-User", "boss")],
        [("X-User", "ann"), ("X-Groups", "a"), ("X-Groups", "ops")],
        [("X-User", "a" * 201)],
        [("X-User", " ")],
        [("X-User", b"\xff")],
        [("X-User", "a\u202eb".encode())],
    ],
)
async def test_a_name_that_is_not_one_is_refused(named: list[tuple[str, str | bytes]]) -> None:
    async with proxied() as proxy:
        assert (await proxy.get("/who", headers=named)).status_code == 403  # type: ignore[arg-type]


async def test_a_form_carries_a_token_of_its_person() -> None:
    def token(page: httpx.Response) -> str:
        return page.text.partition("csrf-of-page=")[2].partition("=")[0]

    async def shown(request: Request) -> Response:
        return Response(f"csrf-of-page={request.state.csrf}=")

    async with proxied(PLANS_WEB_ROLES="*=operator") as proxy:
        proxy._transport.app.router.routes.insert(0, Route("/shown", shown))  # type: ignore[attr-defined]
        anns = token(await proxy.get("/shown", headers=ANN))
        bobs = token(await proxy.get("/shown", headers={"X-User": "bob"}))
        assert anns != bobs
        for csrf, status in ((anns, 200), (bobs, 400), ("", 400)):
            assert (await proxy.post("/change", headers=ANN, data={"csrf": csrf})).status_code == status


async def test_nobody_logs_in_or_out_at_the_page_itself() -> None:
    async with proxied() as proxy:
        assert (await proxy.get("/login", headers=ANN)).status_code == 404
        assert "/logout" not in (await proxy.get("/nothing", headers=ANN)).text
