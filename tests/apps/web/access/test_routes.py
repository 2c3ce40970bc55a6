"""Every route of the page: who may use it. A new one that changes something must say who may, or nothing is served."""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route

from plansurvive.apps.web.app import application
from plansurvive.apps.web.common.service import Service
from plansurvive.client.access import Role, access_for, needs, public
from plansurvive.client.access.people import role_needed, unguarded
from plansurvive.runtime.settings import Settings

URL = "https://plans.example"
WITHOUT_LOGIN = {
    "/login", "/login/callback", "/logged-out", "/decide/{token}", "/static/{version}/{name:path}",
    "/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp",
}  # fmt: skip
"""The routes that people without a login may use; a further one needs a reason."""
PUBLIC_POSTS = {"/decide/{token}"}


async def _handler(_request: Request) -> Response:
    return Response("ok")


def app_of(settings: Settings, address: str = "10.0.0.1") -> httpx.ASGITransport:
    """The application for a team, as the proxy at 10.0.0.1 reaches it."""
    found = application(service_of(settings))
    return httpx.ASGITransport(found, raise_app_exceptions=False, client=(address, 1))


def service_of(settings: Settings) -> Service:
    given = settings.with_flags(
        web_url=URL, web_proxy_header="X-User", web_proxy_from=("10.0.0.1/32",),
        web_roles="viewer=viewer,approver=approver,operator=operator",
    )  # fmt: skip
    return Service(given, {}, access_for(given, {}, "", "0.0.0.0:80"))


def table(app: Starlette) -> Iterator[tuple[str, str, Role | None]]:
    """Method, path and role of every route."""
    for route in app.router.routes:
        assert isinstance(route, Route), f"{route}: what is not a Route has to be looked at here first"
        for method in sorted(route.methods or ()):
            yield method, route.path, role_needed(route.endpoint)


def filled(path: str) -> str:
    """The path with something for each of its parameters."""
    return re.sub(r"\{[^}]*\}", "x", path)


def client_of(settings: Settings, name: str | None) -> httpx.AsyncClient:
    headers = {"Origin": URL} | ({"X-User": name} if name else {})
    return httpx.AsyncClient(transport=app_of(settings), base_url=URL, headers=headers)


@pytest.mark.parametrize(
    "routes",
    [
        [Route("/new", _handler, methods=["POST"])],
        [Route("/new", _handler, methods=["GET", "DELETE"])],
        [Mount("/area", routes=[Route("/new", _handler, methods=["PUT"])])],
        [Mount("/area", app=Starlette())],
    ],
)
def test_a_route_that_does_not_say_who_may_use_it_is_found(routes: list[BaseRoute]) -> None:
    found = unguarded(routes)
    assert len(found) == (0 if isinstance(routes[0], Mount) and not routes[0].routes else 1)


def test_a_route_that_says_it_or_changes_nothing_is_not(settings: Settings) -> None:
    marked = [needs(Role.VIEWER)(_handler), public(needs(Role.VIEWER)(_handler))]
    assert unguarded([Route("/new", each, methods=["POST"]) for each in marked]) == []
    assert unguarded([Route("/new", _handler)]) == []
    assert unguarded(application(service_of(settings)).router.routes) == []


def test_the_routes_that_change_something_without_a_login_are_these(settings: Settings) -> None:
    posts = {path for method, path, role in table(application(service_of(settings))) if method == "POST" and not role}
    assert posts == PUBLIC_POSTS


async def test_each_route_asks_for_a_login_but_those_that_are_open(settings: Settings) -> None:
    async with client_of(settings, None) as nobody:
        for method, path, _role in table(application(service_of(settings))):
            answer = await nobody.request(method, filled(path))
            assert (answer.status_code == 401) == (path not in WITHOUT_LOGIN), f"{method} {path}: {answer.status_code}"


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.parametrize("role", list(Role))
async def test_each_route_refuses_those_whose_role_is_too_low(settings: Settings, role: Role) -> None:
    async with client_of(settings, role.name.lower()) as person:
        for method, path, needed in table(application(service_of(settings))):
            if needed is None or needed <= role:
                continue
            answer = await person.request(method, filled(path))
            assert answer.status_code == 403, f"{method} {path} as {role.name}: {answer.status_code}"
            assert method == "HEAD" or f"needs the role {needed.name.lower()}" in answer.text


@pytest.mark.slow
@pytest.mark.in_turn
async def test_each_form_is_refused_without_its_token_and_from_another_page(settings: Settings) -> None:
    async with client_of(settings, "operator") as person:
        for method, path, needed in table(application(service_of(settings))):
            if method != "POST" or needed is None:
                continue
            answer = await person.post(filled(path), data={"step": "x"})
            assert (answer.status_code, "BAD_FORM" in answer.text) == (400, True), f"{path}: {answer.text[-300:]}"
            for headers in (
                {"Origin": "https://evil.example"}, {"Origin": "null"}, {"Origin": f"{URL}.evil.example"},
                {"Origin": "http://plans.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"},
            ):  # fmt: skip
                assert (await person.post(filled(path), headers=headers)).status_code == 403, f"{path} {headers}"


async def test_other_pages_may_open_a_page_and_do_nothing_else(settings: Settings) -> None:
    foreign = {"Sec-Fetch-Site": "cross-site"}
    opens = foreign | {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    async with httpx.AsyncClient(transport=app_of(settings), base_url=URL, headers={"X-User": "operator"}) as person:
        for headers, status in (
            (opens, 200), (foreign | {"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}, 403),
            (opens | {"Sec-Fetch-Dest": "iframe"}, 403), (foreign, 403), (opens | {"Sec-Fetch-Site": "same-site"}, 200),
            ({"Sec-Fetch-Site": "same-origin"}, 200), ({"Sec-Fetch-Site": "none"}, 200), ({}, 200),
        ):  # fmt: skip
            assert (await person.get("/logged-out", headers=headers)).status_code == status, headers
        # A POST that says nothing of where it comes from.
        assert (await person.post("/logout")).status_code == 403


async def test_over_https_browsers_are_told_to_stay_with_it(settings: Settings) -> None:
    async with client_of(settings, "viewer") as person:
        headers = (await person.get("/logged-out")).headers
        assert headers["strict-transport-security"] == "max-age=31536000"
        assert headers["cache-control"] == "no-store"
        assert headers["cross-origin-opener-policy"] == headers["cross-origin-resource-policy"] == "same-origin"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
