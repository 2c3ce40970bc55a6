"""The way out of an agent's sandbox: the proxy alone, to the hosts of `network` alone. Real programs in the sandbox."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from plansurvive.activities.network.address_policy import AddressPolicy, Endpoint
from plansurvive.activities.sandbox.process import begin
from plansurvive.activities.sandbox.sandbox import choose
from plansurvive.features.coding_agents.network import CONNECTIONS, Proxy
from tests.kit.lacking import require_sandbox

ASK = """
import os, socket, sys
proxy = os.environ["HTTPS_PROXY"].rpartition(":")[2]
def ask(line, then=b"hello"):
    with socket.create_connection(("127.0.0.1", int(proxy)), 10) as way:
        way.sendall(line.encode() + b"\\r\\nHost: x\\r\\n\\r\\n")
        said = way.recv(65536)
        if b" 200 " in said[:20]:
            way.sendall(then)
            way.shutdown(socket.SHUT_WR)
            said = b""
            while data := way.recv(65536):
                said += data
        return said
"""


@dataclass
class Place:
    """A workspace, and a server beside it that answers in capitals when all has been said."""

    root: Path
    port: int
    refused: list[str] = field(default_factory=list)

    async def run(self, hosts: list[str], code: str, addresses: AddressPolicy | None = None) -> str:
        """What a program in the sandbox prints that may reach these hosts."""
        require_sandbox("bwrap")
        workspace = self.root / "workspace"
        workspace.mkdir(exist_ok=True)
        sandbox = choose("required", state=self.root / "state")
        proxy = Proxy(hosts, addresses or AddressPolicy.of(["127.0.0.1", "localhost"]), self.refused.append)
        command = proxy.wrapped([sys.executable, "-I", "-S", "-c", ASK + code])
        order = sandbox.confine(command, str(workspace), str(workspace), (), proxy.variables, owner="plan-x/1")
        async with proxy.serving(temporary := sandbox.temporary(str(workspace), "plan-x/1")):
            directory = os.open(workspace, os.O_RDONLY)
            program = await begin(order, directory)
            os.close(directory)
            try:
                said = await asyncio.wait_for(program.stdout.read(), 30)
                assert not (errors := await program.stderr.read()), errors.decode()
            finally:
                await program.end()
        assert not [*Path(temporary).glob(".network-*")]
        return said.decode().strip()


@asynccontextmanager
async def place_at(root: Path) -> AsyncIterator[Place]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.read()).upper())
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield Place(root, server.sockets[0].getsockname()[1])


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    """Where programs run, and what they may reach or not."""
    async with place_at(tmp_path) as made:
        yield made


async def test_a_host_of_the_list_is_reached_through_the_proxy_and_in_no_other_way(place: Place) -> None:
    said = await place.run(
        [f"localhost:{place.port}"],
        f"""
print(ask("CONNECT localhost:{place.port} HTTP/1.1").decode())
try:
    socket.create_connection(("127.0.0.1", {place.port}), 5)
except OSError as error:
    print(type(error).__name__)
try:
    socket.create_connection(("192.0.2.1", 443), 5)
except OSError as error:
    print(type(error).__name__)
""",
    )
    assert said.split() == ["HELLO", "ConnectionRefusedError", "OSError"]
    assert place.refused == []


async def test_only_a_host_of_the_list_is_reached_however_it_is_spelled(place: Place) -> None:
    port = place.port
    same = ["127.0.0.1:{port}", "LOCALHOST:{port}"]
    others = [
        *("example.org:443", "localhost:22", "127.1:{port}", "[::1]:{port}", "0x7f000001:{port}", "2130706433:{port}"),
        *("localhost.example.org:{port}", "localhost@x:{port}", "localhost\x00:{port}", ":{port}"),
    ]
    lines = [f"CONNECT {each.format(port=port)} HTTP/1.1" for each in [*same, *others, others[0]]]
    said = await place.run(
        [f"localhost:{port}", f"127.0.0.1:{port}"],
        f"for line in {lines!r}: print(ask(line).decode().partition('\\r')[0])",
    )
    assert said.splitlines() == ["HELLO"] * 2 + ["HTTP/1.1 403 Forbidden"] * (len(others) + 1)
    assert len(place.refused) == len(others)  # once each
    assert all("it is not in `network` of agents.toml" in each for each in place.refused)


async def test_addresses_that_http_request_may_not_reach_are_refused_for_allowed_names_too(place: Place) -> None:
    code = f'print(ask("CONNECT localhost:{place.port} HTTP/1.1").decode())'
    hosts = [f"localhost:{place.port}", "169.254.169.254", "*.example.org"]
    said = await place.run(hosts, code, AddressPolicy())
    assert "403 Forbidden" in said
    assert "is not a public address; add localhost" in place.refused[0]
    await place.run(hosts, 'ask("CONNECT 169.254.169.254:80 HTTP/1.1")', AddressPolicy())
    assert "169.254.169.254:80: 169.254.169.254 is not a public address" in place.refused[1]
    from ipaddress import ip_address

    own = AddressPolicy.of(["127.0.0.0/8", "::1"], lambda: [Endpoint("x", place.port, (ip_address("127.0.0.1"),))])
    await place.run(hosts, code, own)
    assert "a server of the worker itself" in place.refused[2]


async def test_what_is_no_request_to_connect_is_refused(place: Place) -> None:
    sent = ["GET http://localhost/ HTTP/1.1", "CONNECT nohost HTTP/1.1", "CONNECT localhost:99999 HTTP/1.1",
            "CONNECT localhost:-1 HTTP/1.1", "CONNECT localhost:80/x HTTP/1.1"]  # fmt: skip
    said = await place.run(["localhost"], f"for line in {sent!r}: print(ask(line).decode().partition('\\r')[0])")
    assert said.splitlines() == ["HTTP/1.1 405 Method Not Allowed"] * len(sent)
    assert place.refused == []


async def test_nothing_that_a_program_sends_ends_the_proxy_or_fills_the_worker(place: Place) -> None:
    said = await place.run(
        [f"localhost:{place.port}"],
        f"""
import os, select, time
noise = [b"", b"\\r\\n", b"\\r\\n\\r\\n", os.urandom(3000) + b"\\r\\n\\r\\n", b"CONNECT " + b"a" * 40000]
for each in noise:
    with socket.create_connection(("127.0.0.1", int(proxy)), 10) as way:
        try:
            way.sendall(each)
            way.shutdown(socket.SHUT_WR)
            while way.recv(65536):
                pass
        except TimeoutError:
            raise
        except OSError:
            pass  # it was closed before all of it was read
# Each of those has been closed by the proxy: from here on, only what is held counts. Which of these are too many is
# decided in the order in which the proxy accepts them.
held = [socket.create_connection(("127.0.0.1", int(proxy)), 10) for _ in range({CONNECTIONS + 10})]
closed = set()
while len(closed) < 10:
    ready, _, _ = select.select([each for each in held if each not in closed], [], [], 20)
    assert ready, str(len(closed)) + " were closed, and no more"
    closed.update(ready)
print(len(closed), set(each.recv(1) for each in closed) == set([b""]))
for each in held:
    each.close()
while True:
    try:
        print(ask("CONNECT localhost:{place.port} HTTP/1.1").decode())
        break
    except (OSError, IndexError):
        time.sleep(0.05)
""",
    )
    assert said.split() == ["10", "True", "HELLO"]


async def test_much_is_passed_on_whole(place: Place) -> None:
    size = 3_000_000
    code = f'print(len(ask("CONNECT localhost:{place.port} HTTP/1.1", b"x" * {size})))'
    assert await place.run([f"localhost:{place.port}"], code) == str(size)
