"""The attacks of a web page on the embedded server, made with a real Chromium; before the defence, they succeed."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from plansurvive.runtime import server
from plansurvive.runtime.browser_guard import BLOCKED_PORTS
from plansurvive.runtime.server import HOST, Server
from plansurvive.runtime.settings import Settings
from tests.apps.web.browser import served
from tests.kit.waiting import connected, until
from tests.runtime.browsers import EVIL, Chromium, chromium, listeners, old_server, start_body
from tests.runtime.test_browser_guard import WHERE, names

pytestmark = pytest.mark.slow

FETCH = """
Promise.allSettled(PORTS.map(([ip, port]) => fetch(`http://${ip}:${port}WHERE/fetch-${port}`,
    {method: 'POST', mode: 'no-cors', headers: {'Content-Type': 'text/plain'}, body: BODY}))).then(all => all.length)
"""
FORMS = """
PORTS.map(([ip, port]) => {
    const frame = document.createElement('iframe');
    frame.name = `to-${port}`;
    document.body.append(frame);
    const form = document.createElement('form'), cut = BODY.lastIndexOf('"payloads"');
    form.method = 'POST'; form.enctype = 'text/plain'; form.target = frame.name;
    form.action = `http://${ip}:${port}WHERE/form-${port}`;
    const field = document.createElement('input');
    field.name = BODY.slice(0, -1) + ', "identity": "'; field.value = '"}';
    form.append(field); document.body.append(form); form.submit();
}).length
"""
READ = """
Promise.allSettled(PORTS.map(([ip, port]) => fetch(`http://${ip}:${port}/api/v1/namespaces`).then(it => it.text())))
    .then(all => all.filter(it => it.status == 'fulfilled').map(it => it.value).join(''))
"""
REBOUND = """
(async () => {
    const read = await fetch('/api/v1/namespaces').then(it => it.text()).catch(String);
    const token = (document.cookie.match(/_csrf=([^;]*)/) || ['', ''])[1];
    const headers = {'Content-Type': 'application/json', 'X-CSRF-TOKEN': token};
    const name = 'rebound-' + location.port;
    await fetch('WHERE/' + name, {method: 'POST', headers, body: BODY}).catch(String);
    return read;
})()
"""


@pytest_asyncio.fixture
async def evil() -> AsyncIterator[str]:
    """The URL of the attacker's page."""

    async def page(_: Request) -> HTMLResponse:
        return HTMLResponse("<!doctype html><title>Kittens</title><body>")

    async with served(Starlette(routes=[Route("/", page)])) as origin:
        yield f"http://{EVIL}:{origin.rpartition(':')[2]}/"


async def attack(browser: Chromium, page: str, of: list[tuple[str, int]]) -> tuple[str, set[str]]:
    """Make every attack from a page; returns what it could read, and the network errors it met."""

    def script(text: str) -> str:
        ports = repr([list(each) for each in of])
        return text.replace("PORTS", ports).replace("WHERE", WHERE).replace("BODY", repr(start_body()))

    session, _ = await browser.open(page)
    for text in (FETCH, FORMS):
        assert await browser.run(session, script(text)) == len(of)
    told = [await browser.run(session, script(READ))]
    errors = set()
    for _, port in of:
        session, error = await browser.open(f"http://{EVIL}:{port}/")
        errors.add(error)
        if not error:
            told.append(await browser.run(session, script(REBOUND)))
    await browser.run(session, "new Promise(done => setTimeout(done, 500))")  # the forms' requests are on their way
    return "".join(map(str, told)), errors


async def test_pages_start_and_read_plans_only_of_a_server_as_it_was_started_before(
    temporal_binary: Path, caches: dict[str, str], tmp_path: Path, evil: str
) -> None:
    state = {"PLANS_STATE_DIR": str(tmp_path / "state"), "PLANS_SERVER": "embedded", "TEMPORAL_CONFIG_FILE": os.devnull}
    settings = Settings.read({**caches, **state})
    guarded = await server.ensure(settings)
    try:
        async with old_server(temporal_binary, tmp_path) as before, chromium() as browser:
            told, _ = await attack(browser, evil, listeners(before))
            started = await names(await connected(before.address))
            assert {name.partition("-")[0] for name in started} == {"fetch", "form", "rebound"}
            assert "namespaceInfo" in told

            told, errors = await attack(browser, evil, listeners(guarded))
            assert await names(await connected(guarded.address)) == set()
            assert "namespaceInfo" not in told
            assert "# HELP" not in told
            assert "net::ERR_UNSAFE_PORT" in errors
            await _shows(browser, guarded)
    finally:
        await server.stop(settings)


async def _shows(browser: Chromium, guarded: Server) -> None:
    """The link that we print opens the UI, which lists workflows."""
    session, error = await browser.open(f"{guarded.ui}/namespaces/default/workflows")
    assert error == ""
    text = "document.body.innerText"
    await until(lambda: browser.run(session, f"{text}.includes('Marker')"), "the UI lists workflows")


async def test_the_browser_refuses_every_port_that_is_taken_for_refused(tmp_path: Path, evil: str) -> None:
    async with chromium() as browser:
        for port in BLOCKED_PORTS:
            _, error = await browser.open(f"http://{HOST}:{port}/")
            assert (port, error) == (port, "net::ERR_UNSAFE_PORT")
        assert (await browser.open(evil))[1] == ""
