"""What http_request reaches: in every spelling, after redirects, with a resolver that changes its answer.

The target is a real server on this machine, so a request that comes through is seen there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import ip_address

import httpx
import pytest

from plansurvive.activities.attempt.environment import ToolEnvironment
from plansurvive.activities.network.address_policy import AddressPolicy, Endpoint, is_public
from plansurvive.activities.network.own_servers import own_servers
from plansurvive.activities.network.pinned_connections import resolve
from plansurvive.plans.errors import ToolError
from plansurvive.runtime.server import Server
from plansurvive.runtime.settings import Settings
from tests.activities.attempts import Attempts
from tests.activities.sites import Site, serve

PUBLIC = "93.184.215.14"


@pytest.fixture
def site() -> Iterator[Site]:
    """A site on this machine."""
    with serve() as site:
        yield site


def on(attempts: Attempts, *allowed: str, **more: object) -> Attempts:
    """Attempts on a worker with this PLANS_HTTP_ALLOW."""
    return attempts.but(site=ToolEnvironment(addresses=AddressPolicy.of(allowed, **more)))  # type: ignore[arg-type]


HOSTS = [
    *("127.0.0.1", "localhost", "LOCALHOST", "127.1", "127.0.1", "127.255.255.254"),
    *("2130706433", "0x7f000001", "0x7F.0.0.1", "0x7f.1", "017700000001", "0x7f.0.0.01", "0", "0.0.0.0"),
    *("[::1]", "[0:0:0:0:0:0:0:1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::ffff:0:127.0.0.1]"),
    *("[::127.0.0.1]", "[64:ff9b::127.0.0.1]", "[64:ff9b:1::7f00:1]", "[2002:7f00:1::]", "[2001:0:7f00:1::80ff:fffe]"),
    *("[fe80::5efe:127.0.0.1]", "[2606:4700::5efe:127.0.0.1]", "[fe80::1]", "[fd00::1]", "[fec0::1]", "[ff02::1]"),
    *("169.254.169.254", "[fd00:ec2::254]", "[::ffff:169.254.169.254]", "0xa9fea9fe", "10.0.0.1", "172.16.0.1"),
    *("192.168.1.1", "100.64.0.1", "224.0.0.1", "255.255.255.255", "240.0.0.1", "198.18.0.1", "192.0.2.1", "192.0.0.8"),
    *("[2001:db8::1]", "[3fff::1]", "[5f00::1]", "[100::1]", "192.88.99.1"),
    *("168.63.129.16", "[::ffff:168.63.129.16]", "[64:ff9b::168.63.129.16]", "0xa83f8110"),
]
ODD_HOSTS = [
    *("localhost.", "127.0.0.1.", "0177.0.0.1", "127.0.0.01"),
    *("①②⑦.⓪.⓪.①", "127。0。0。1", "ⓛocalhost", "127%2e0%2e0%2e1", "127.0.0.1%00.example.com", "lo\u00adcalhost"),
    *("[::1%25lo]", "localhost..", "%31%32%37.0.0.1", "127.0.0.1\\@example.com", "example.com\\@127.0.0.1"),
]


@pytest.mark.parametrize("host", HOSTS)
async def test_no_spelling_of_an_address_that_is_not_public_is_reached(
    attempts: Attempts, site: Site, host: str
) -> None:
    error = await on(attempts).error("http_request", url=f"http://{host}:{site.port}/secret")
    assert error.type == "ADDRESS_REFUSED"
    assert "PLANS_HTTP_ALLOW" in str(error)
    assert site.asked == []


@pytest.mark.parametrize("host", ODD_HOSTS)
async def test_an_odd_spelling_is_refused_as_well_or_no_host_at_all(attempts: Attempts, site: Site, host: str) -> None:
    code = await on(attempts).code("http_request", url=f"http://{host}:{site.port}/secret", timeout=60)
    assert code in ("ADDRESS_REFUSED", "INVALID_ARGS", "HTTP_UNREACHABLE")
    assert site.asked == []


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "017700000001", "[::ffff:127.0.0.1]"])
async def test_control_the_list_opens_it_and_the_same_request_arrives(
    attempts: Attempts, site: Site, host: str
) -> None:
    opened = on(attempts, "127.0.0.0/8", "::ffff:127.0.0.1", "::1")
    assert (await opened.value("http_request", url=f"http://{host}:{site.port}/secret"))["body"] == "hello"
    assert [path for _, path, *_ in site.asked] == ["/secret"]


@pytest.mark.parametrize(
    ("entry", "is_open"),
    [
        *(("localhost", True), ("localhost:PORT", True), ("LOCALHOST.", True), ("127.0.0.1", True)),
        *(("127.0.0.1:PORT", True), ("localhost:1", False), ("127.0.0.1:1", False), ("10.0.0.0/8", False)),
        *(("*.localhost", False), ("host", False)),
        *(("0.0.0.0/0", True), ("::/0", False), ("ocalhost", False)),
    ],
)  # fmt: skip
async def test_an_entry_opens_what_it_names_and_nothing_else(
    attempts: Attempts, site: Site, entry: str, is_open: bool
) -> None:
    async def only_ipv4(_: str, __: int) -> list[str]:
        return ["127.0.0.1"]

    policy = on(attempts, entry.replace("PORT", str(site.port)), look_up=only_ipv4)
    url = f"http://localhost:{site.port}/"
    if is_open:
        await policy.value("http_request", url=url)
    else:
        assert await policy.code("http_request", url=url) == "ADDRESS_REFUSED"
    assert bool(site.asked) is is_open


async def test_a_redirect_to_this_machine_is_refused(attempts: Attempts, site: Site) -> None:
    with serve() as hidden:
        opened = on(attempts, f"127.0.0.1:{site.port}")
        for target in (
            f"http://127.0.0.1:{hidden.port}/x",
            f"http://0x7f.1:{hidden.port}/x",
            f"//[::1]:{hidden.port}/x",
        ):
            code = await opened.code("http_request", url=f"{site.url}/to/{target}")
            assert code == "ADDRESS_REFUSED"
        assert hidden.asked == []
        both = on(attempts, "127.0.0.1")
        await both.value("http_request", url=f"{site.url}/to/http://127.0.0.1:{hidden.port}/x")
        assert [path for _, path, *_ in hidden.asked] == ["/x"]  # the control


class Rebinding:
    """A resolver that answers with a public address first, and with this machine afterwards."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def __call__(self, _host: str, _port: int) -> Sequence[str]:
        self.asked += 1
        return self.answers[min(self.asked, len(self.answers)) - 1]


async def test_a_name_is_resolved_once_and_the_connection_goes_to_the_checked_address(
    attempts: Attempts, site: Site
) -> None:
    names = Rebinding([PUBLIC], ["127.0.0.1"])
    code = await on(attempts, look_up=names).code(
        "http_request", url=f"http://rebinding.example:{site.port}/", timeout=0.5
    )
    assert code in ("HTTP_TIMEOUT", "HTTP_UNREACHABLE")  # of the public address, where nothing was asked for
    assert (names.asked, site.asked) == (1, [])


async def test_control_checking_a_name_and_connecting_by_name_is_deceived(site: Site) -> None:
    names = Rebinding([PUBLIC], ["127.0.0.1"])
    AddressPolicy().choose("rebinding.example", site.port, await names("rebinding.example", site.port))
    address = (await names("rebinding.example", site.port))[0]
    async with httpx.AsyncClient(trust_env=False) as client:
        await client.get(f"http://{address}:{site.port}/", headers={"Host": "rebinding.example"})
    assert len(site.asked) == 1


async def test_of_several_addresses_only_the_public_ones_are_tried(attempts: Attempts, site: Site) -> None:
    names = Rebinding(["127.0.0.1", PUBLIC, "::1"])
    code = await on(attempts, look_up=names).code("http_request", url=f"http://mixed.example:{site.port}/", timeout=0.5)
    assert code in ("HTTP_TIMEOUT", "HTTP_UNREACHABLE")
    assert site.asked == []
    assert await on(attempts, look_up=Rebinding([])).code("http_request", url="http://x.example/") == "HTTP_UNREACHABLE"


def test_the_servers_of_the_worker_itself_take_an_entry_with_host_and_port() -> None:
    own = [Endpoint("127.0.0.1", 7233, (ip_address("127.0.0.1"),))]
    for entries in (
        (),
        ("127.0.0.0/8",),
        ("127.0.0.1",),
        ("localhost",),
        ("*",)[:0],
        ("127.0.0.1:7234",),
        ("0.0.0.0/0",),
    ):
        policy = AddressPolicy.of(entries, lambda: own)
        for host, address in (("localhost", "127.0.0.1"), ("x", "127.0.0.2"), ("y", "::ffff:127.0.0.1")):
            with pytest.raises(ToolError, match="cannot be reached"):
                policy.choose(host, 7233, [address])
    for entry in ("127.0.0.1:7233", "localhost:7233"):
        assert AddressPolicy.of([entry], lambda: own).choose("localhost", 7233, ["127.0.0.1"]) == ["127.0.0.1"]
    assert AddressPolicy.of(["127.0.0.1"], lambda: own).choose("localhost", 80, ["127.0.0.1"]) == ["127.0.0.1"]


def test_they_are_found_with_every_port_they_listen_on(server: Server, settings: Settings) -> None:
    changed = settings.with_flags(openai_base_url="http://127.0.0.1:11434/v1")
    found = {(each.host, each.port) for each in own_servers(changed, server.address)}
    host, _, port = server.address.rpartition(":")
    ui = server.ui.rpartition(":")[2]
    assert {(host, int(port)), ("127.0.0.1", 11434), (host, int(ui))} <= found
    assert len(found) > 4  # among them ports that nothing records


PUBLIC_ADDRESSES = ["8.8.8.8", PUBLIC, "2606:4700:4700::1111", "64:ff9b::8.8.8.8", "2002:808:808::1", "100.128.0.1"]


def test_public_addresses_are_public() -> None:
    assert [text for text in PUBLIC_ADDRESSES if not is_public(ip_address(text))] == []


async def test_the_resolver_of_this_machine_reads_the_spellings() -> None:
    assert {(await resolve(host, 80))[0] for host in ("127.1", "0x7f.1", "2130706433")} == {"127.0.0.1"}
