"""No request that a browser can send starts, signals or reads anything of the embedded server.

Each attack is first made on a server as older versions started it, where it succeeds. `test_browsers.py` makes them
with a real browser.
"""

from __future__ import annotations

import os
import random
import socket
import uuid
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest
import pytest_asyncio
from temporalio.client import Client

from plansurvive.runtime import server
from plansurvive.runtime.browser_guard import BLOCKED_PORTS, refusal
from plansurvive.runtime.server import Server
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.weaknesses import weaknesses
from tests.kit.waiting import connected, until
from tests.runtime.browsers import EVIL, listeners, old_server, send, start_body

OWN = [(b"host", b"127.0.0.1:8233")]
ORIGIN = (b"origin", b"http://127.0.0.1:8233")
HOSTS = ["{}", EVIL, f"{EVIL}:8233", "localhost", "127.0.0.1", "[::1]", "0.0.0.0", "", "not a Host, so none is allowed"]
WHERE = "/api/v1/namespaces/default/workflows"
SAID = "namespaceInfo", "workflowExecution", "namespace=", "# HELP"
"""What only somebody who may read is told."""


@pytest_asyncio.fixture(scope="module")
async def settings_here(
    tmp_path_factory: pytest.TempPathFactory, temporal_binary: Path, caches: dict[str, str]
) -> Settings:
    state = {"PLANS_STATE_DIR": str(tmp_path_factory.mktemp("guarded") / "state"), "PLANS_SERVER": "embedded"}
    return Settings.read({**caches, **state, "TEMPORAL_CONFIG_FILE": os.devnull})


@pytest_asyncio.fixture(scope="module")
async def guarded(settings_here: Settings) -> AsyncIterator[Server]:
    """An embedded server as it is started now, while enough of the ports that browsers refuse are free for it.

    There are fifteen on a machine, and servers of other programs may have most of them.
    """

    async def started() -> Server | None:
        running = await server.ensure(settings_here)
        if running.is_closed:
            return running
        await server.stop(settings_here)
        return None

    os.environ["OPENAI_API_KEY"] = "sk-not-for-the-server"
    try:
        yield await until(started, "it gets ports that browsers refuse", patience=600, every=1)
    finally:
        del os.environ["OPENAI_API_KEY"]
        await server.stop(settings_here)


@pytest_asyncio.fixture(scope="module")
async def unguarded(tmp_path_factory: pytest.TempPathFactory, temporal_binary: Path) -> AsyncIterator[Server]:
    """A server as it was started before."""
    async with old_server(temporal_binary, tmp_path_factory.mktemp("unguarded")) as running:
        yield running


def request(method: str, path: str, host: str, body: str = "", *more: str) -> str:
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", "Connection: close", *more]
    return "\r\n".join([*lines, *([f"Content-Length: {len(body)}"] if body else []), "", body])


async def cross_origin(address: tuple[str, int], name: str) -> str:
    """What a page of another origin may send without asking first: a form, or a fetch of plain text."""
    host = f"{address[0]}:{address[1]}"
    more = f"Origin: http://{EVIL}", "Content-Type: text/plain", "Sec-Fetch-Site: cross-site"
    return await send(address, request("POST", f"{WHERE}/{name}", host, start_body(), *more))


async def rebound(address: tuple[str, int], name: str, host: str) -> str:
    """What a page does whose name now leads here: it reads, and writes with the token that it was given."""
    first = await send(address, request("GET", "/", host))
    token = first.partition("_csrf=")[2].partition(";")[0]
    more = f"Origin: http://{host}", "Content-Type: application/json", "Sec-Fetch-Site: same-origin"
    with_token = (*more, f"Cookie: _csrf={token}", f"X-CSRF-Token: {token}")
    said = [await send(address, request("GET", path, host)) for path in ("/api/v1/namespaces", WHERE, "/metrics")]
    return "".join([*said, await send(address, request("POST", f"{WHERE}/{name}", host, start_body(), *with_token))])


async def smuggled(address: tuple[str, int], name: str) -> str:
    """Requests inside of one that is welcome, and forms of address that name another host than `Host` does."""
    inner = request("POST", f"{WHERE}/{name}", EVIL, start_body())
    host, length = f"{address[0]}:{address[1]}", f"Content-Length: {len(start_body())}"
    welcome = request("GET", "/favicon.ico", host)
    kept = welcome.replace("Connection: close\r\n", "")
    both = request("GET", "/favicon.ico", host, "", "Transfer-Encoding: chunked", "Content-Length: 4") + "0\r\n\r\n"
    odd = f"POST http://{EVIL}{WHERE}/{name} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{length}\r\n\r\n"
    two = request("POST", f"{WHERE}/{name}", host, start_body(), f"Host: {EVIL}")
    every = kept + inner, welcome + inner, both + inner, odd + start_body(), two
    return "".join([await send(address, text) for text in every])


async def attack(running: Server, of: list[tuple[str, int]]) -> tuple[set[str], str]:
    """Make every attack on these addresses; returns the workflows it started, and everything it was told."""
    told = ""
    for address in of:
        told += await cross_origin(address, f"cross-{address[1]}")
        told += await smuggled(address, f"smuggled-{address[1]}")
        for number, host in enumerate(HOSTS):
            if host in ("localhost", "127.0.0.1") and running.guard and running.ui.endswith(f":{address[1]}"):
                continue  # the UI's own page, forwarded
            told += await rebound(address, f"rebound-{number}-{address[1]}", host.format(f"{EVIL}:{address[1]}"))
    return await names(await connected(running.address)), told


async def names(client: Client) -> set[str]:
    """The workflows that exist; lists lag behind, so one that is started now must be in it."""
    marker = await client.start_workflow("Marker", id=f"marker-{uuid.uuid4().hex}", task_queue="nobody")

    async def listed() -> set[str] | None:
        found = {each.id async for each in client.list_workflows()}
        return found if marker.id in found else None

    found: set[str] = await until(listed, "the server lists what was started")
    return {name for name in found if not name.startswith("marker-")}


async def test_a_page_could_start_and_read_plans_of_a_server_as_it_was_started_before(unguarded: Server) -> None:
    started, told = await attack(unguarded, listeners(unguarded))
    assert {name.partition("-")[0] for name in started} >= {"cross", "rebound", "smuggled"}
    assert all(sign in told for sign in ("namespaceInfo", "# HELP"))


async def test_no_page_starts_or_reads_anything_now(guarded: Server) -> None:
    within_reach = [address for address in listeners(guarded) if address[1] not in BLOCKED_PORTS]
    started, told = await attack(guarded, within_reach)
    assert started == set()
    assert not [sign for sign in SAID if sign in told]
    assert f"{server.HOST}:{guarded.ui.rpartition(':')[2]}" in {f"{ip}:{port}" for ip, port in within_reach}


async def test_every_port_that_speaks_http_is_one_that_browsers_refuse(guarded: Server) -> None:
    speaking = {}
    for address in listeners(guarded):
        speaking[address] = (await send(address, request("GET", "/", "127.0.0.1"))).startswith("HTTP/1.1 ")
    ui = int(guarded.ui.rpartition(":")[2])
    assert sum(speaking.values()) == 4
    assert {port for (_, port), speaks in speaking.items() if speaks} - set(BLOCKED_PORTS) == {ui}
    assert guarded.is_closed


async def test_the_http_api_is_off_even_for_those_who_reach_its_port(guarded: Server) -> None:
    closed = [address for address in listeners(guarded) if address[0] == server.HOST and address[1] in BLOCKED_PORTS]
    answers = [await cross_origin(address, "past-the-port") for address in closed]
    answers += [await send(address, request("GET", WHERE, host)) for address in closed for host in HOSTS]
    nexus = "Nexus-Operation-State: succeeded", "Content-Type: application/json"
    callback = "/namespaces/default/nexus/callback"
    answers += [await send(address, request("POST", callback, "x", "{}", *nexus)) for address in closed]
    assert "Host not allowed" in "".join(answers)
    assert not [
        sign for sign in ("namespaceInfo", "executions", " 200 OK\r\nContent-Type: appl") if sign in str(answers)
    ]
    # Server 1.29 has Nexus turned off; 1.32 cannot, and wants the token of an operation, which no plan has.
    assert any(refusal in answers[-1] + answers[-2] for refusal in ("disabled", "invalid callback token"))


async def test_the_ui_s_own_page_works(guarded: Server) -> None:
    host = guarded.ui.removeprefix("http://")
    address = (server.HOST, int(host.rpartition(":")[2]))

    async def answers() -> bool:  # it connects to the server again only a while after it found it starting
        return " 200 " in await send(address, request("GET", "/api/v1/namespaces", host))

    await until(answers, "the UI reaches the server")
    first = await send(address, request("GET", "/namespaces/default/workflows", host, "", "Sec-Fetch-Site: none"))
    token = first.partition("_csrf=")[2].partition(";")[0]
    assert "<!doctype html>" in first
    assert "cross-origin-resource-policy: same-origin" in first.lower()
    own = f"Origin: {guarded.ui}", "Sec-Fetch-Site: same-origin", f"Cookie: _csrf={token}", f"X-CSRF-Token: {token}"
    assert " 200 " in await send(address, request("POST", f"{WHERE}/by-hand", host, start_body(), *own))
    described = await (await connected(guarded.address)).get_workflow_handle("by-hand").describe()
    assert described.workflow_type == "Pwned"
    await (await connected(guarded.address)).get_workflow_handle("by-hand").terminate()


async def test_the_server_inherits_neither_keys_nor_settings(guarded: Server) -> None:
    assert guarded.guard is not None
    for pid in (guarded.pid, guarded.guard.pid):
        environ = psutil.Process(pid).environ()
        assert set(environ) <= {*server.INHERITED, "HOME", "USER"}
        assert environ.get("USER", "plans") == "plans"  # not ours
    assert os.environ["OPENAI_API_KEY"] not in str(psutil.Process(guarded.pid).environ())


async def test_the_proxy_ends_with_the_server(settings_here: Settings, tmp_path: Path) -> None:
    other = settings_here.model_copy(update={"state_dir": tmp_path / "other"})
    running = await server.ensure(other)
    try:
        assert running.guard is not None
        assert running.guard.is_alive()
        psutil.Process(running.pid).kill()
        await until(lambda: not running.guard.is_alive(), "the proxy ends")  # type: ignore[union-attr]
    finally:
        await server.stop(other)


async def test_a_server_without_its_proxy_is_a_weakness_until_it_is_restarted(
    unguarded: Server, settings_here: Settings, tmp_path: Path, guarded: Server
) -> None:
    other = settings_here.model_copy(update={"state_dir": tmp_path / "other"})
    other.make_state_dir()
    unguarded.write(server.record(other))
    assert server.recorded(other) == unguarded
    [found] = [each for each in weaknesses(other) if each.code == "UI_WITHOUT_GUARD"]
    assert "plan down" in found.text
    assert not [each for each in weaknesses(settings_here) if each.code in ("UI_WITHOUT_GUARD", "METRICS_FOR_BROWSERS")]


def test_ports_that_browsers_refuse_are_taken_while_there_are_any() -> None:
    own = f"127.{random.randint(1, 254)}.{random.randint(1, 254)}.7"  # an address at which nobody else has any of them
    with ExitStack() as opened:
        assert set(server.blocked_ports(2, own)) <= set(BLOCKED_PORTS)
        for port in BLOCKED_PORTS[1:]:
            opened.enter_context(socket.create_server((own, port)))
        rest = server.blocked_ports(3, own)
        assert len(set(rest)) == 3
        assert set(rest) & set(BLOCKED_PORTS) == {BLOCKED_PORTS[0]}


@pytest.mark.parametrize(
    ("method", "more"),
    [
        (b"GET", []),
        (b"GET", [(b"sec-fetch-site", b"none")]),
        (b"GET", [(b"sec-fetch-site", b"same-origin"), ORIGIN]),
        (b"POST", [(b"sec-fetch-site", b"same-origin"), ORIGIN]),
        (
            b"GET",
            [(b"sec-fetch-site", b"cross-site"), (b"sec-fetch-mode", b"navigate"), (b"sec-fetch-dest", b"document")],
        ),
    ],
)
def test_what_the_ui_s_page_sends_is_passed_on(method: bytes, more: list[tuple[bytes, bytes]]) -> None:
    assert refusal(method, b"/", OWN + more) is None


@pytest.mark.parametrize(
    ("method", "target", "headers"),
    [
        (b"GET", b"/", []),
        *[
            (b"GET", b"/", [(b"host", host)])
            for host in (b"", b"evil.example", b"127.0.0.1.evil.example", b"127.0.0.1:x")
        ],
        *[
            (b"GET", b"/", [(b"host", host)])
            for host in (b"evil.example:8233", b"localhost.evil.example", b"0.0.0.0:8233")
        ],
        *[
            (b"GET", b"/", [(b"host", host)])
            for host in (b"127.0.0.1:8233\n", b"user@127.0.0.1", b"2130706433", b"[::1]")
        ],
        (b"GET", b"/", [*OWN, *OWN]),
        (b"GET", b"http://127.0.0.1:8233/", OWN),
        (b"OPTIONS", b"/", [*OWN, ORIGIN]),
        (b"CONNECT", b"evil.example:443", OWN),
        (b"POST", b"/", OWN),
        (b"POST", b"/", [*OWN, (b"origin", b"null")]),
        (b"POST", b"/", [*OWN, (b"origin", b"http://127.0.0.1:9999")]),
        (b"POST", b"/", [*OWN, (b"origin", b"https://127.0.0.1:8233")]),
        (b"POST", b"/", [*OWN, (b"origin", b"http://localhost:8233")]),
        (b"POST", b"/", [*OWN, ORIGIN, (b"sec-fetch-site", b"same-site")]),
        (b"POST", b"/", [*OWN, ORIGIN, ORIGIN]),
        (b"GET", b"/api", [*OWN, (b"sec-fetch-site", b"cross-site")]),
        (b"GET", b"/api", [*OWN, (b"sec-fetch-site", b"cross-site"), (b"sec-fetch-mode", b"no-cors")]),
        (
            b"GET",
            b"/",
            [
                *OWN,
                (b"sec-fetch-site", b"cross-site"),
                (b"sec-fetch-mode", b"navigate"),
                (b"sec-fetch-dest", b"iframe"),
            ],
        ),
    ],
)
def test_what_other_pages_send_is_refused(method: bytes, target: bytes, headers: list[tuple[bytes, bytes]]) -> None:
    assert refusal(method, target, headers)
