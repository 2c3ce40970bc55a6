"""Servers at a URL: where connections go, what is sent to whom, and what is made of bad answers."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address
from urllib.parse import urlsplit

import pytest
from mcp.shared.auth import OAuthToken

from plansurvive.activities.network.address_policy import AddressPolicy, Endpoint
from plansurvive.features.tool_servers.tokens import StoredTokens
from plansurvive.features.tool_servers.tool_server import OAuth, ToolServer
from plansurvive.plans.errors import ToolError
from tests.features.tool_servers.serving import Serving
from tests.features.tool_servers.web_server import CLIENT, CLIENT_SECRET, TOKEN, WebServer, web_server
from tests.nightly import only_nightly


@pytest.fixture
def web() -> Iterator[WebServer]:
    """A server at a URL."""
    with web_server() as server:
        yield server


async def test_tools_of_a_server_at_a_url_are_listed_and_called(serving: Serving, web: WebServer) -> None:
    async with serving.servers(ToolServer(url=web.url)) as servers:
        assert [tool.name for tool in await servers.list_tools("x")] == ["echo"]
        assert await serving.call(servers, "echo", a=1) == {"a": 1}
    assert web.methods()[-2:] == ["tools/list", "tools/call"]


async def test_a_token_goes_to_the_server_and_nowhere_else(serving: Serving, web: WebServer) -> None:
    place = Serving(serving.place, {"TOKEN": TOKEN})
    with web_server() as other:
        web.needs_token, web.behaviour, web.elsewhere = True, "elsewhere", other.url
        async with place.servers(ToolServer(url=web.url, token="env:TOKEN")) as servers:
            error = await place.error(servers, "echo")
        assert f"Redirect to {other.url} not followed" in error.message
        assert other.asked == []
    assert all(headers["authorization"] == f"Bearer {TOKEN}" for verb, _, headers, _ in web.asked if verb == "POST")


@pytest.mark.slow
async def test_a_missing_token_is_said_with_the_status(serving: Serving, web: WebServer) -> None:
    web.needs_token = True
    async with serving.servers(ToolServer(url=web.url)) as servers:
        error = await serving.error(servers, "echo")
    assert error.code == "MCP_UNAVAILABLE"
    assert "it answered 401" in error.message


async def test_a_worker_gets_a_token_with_its_own_credentials(serving: Serving, web: WebServer) -> None:
    web.needs_token = True
    place = Serving(serving.place, {"SECRET": CLIENT_SECRET})
    oauth = OAuth(client_id=CLIENT, client_secret="env:SECRET", issuer=web.origin, scope="tools")
    async with place.servers(ToolServer(url=web.url, oauth=oauth)) as servers:
        assert await place.call(servers, "echo", a=1) == {"a": 1}
        assert await place.call(servers, "echo", a=2) == {"a": 2}
    assert [each["grant_type"] for each in web.issued] == [["client_credentials"]]
    assert web.issued[0]["scope"] == ["tools"]


@pytest.mark.slow
async def test_credentials_are_not_sent_to_an_issuer_that_mcp_toml_does_not_name(
    serving: Serving, web: WebServer
) -> None:
    web.needs_token = True
    place = Serving(serving.place, {"SECRET": CLIENT_SECRET})
    oauth = OAuth(client_id=CLIENT, client_secret="env:SECRET", issuer="https://other.example")
    async with place.servers(ToolServer(url=web.url, oauth=oauth)) as servers:
        error = await place.error(servers, "echo")
    assert error.code == "MCP_UNAVAILABLE"
    assert web.issued == []
    assert CLIENT_SECRET not in error.message


@pytest.mark.slow
async def test_nobody_is_logged_in_says_how_to_log_in(serving: Serving, web: WebServer) -> None:
    web.needs_token = True
    oauth = OAuth(grant="authorization_code", client_id=CLIENT)
    async with serving.servers(ToolServer(url=web.url, oauth=oauth)) as servers:
        error = await serving.error(servers, "echo")
    assert "run `plan mcp login x`" in error.message


@pytest.mark.parametrize(
    ("behaviour", "code", "part"),
    [
        ("huge", "MCP_LIMIT", "a message of more than 98,304 bytes"),
        only_nightly("packed", "MCP_LIMIT", "a compressed body"),
        ("drop", "OUTCOME_UNKNOWN", "all or part of it may have happened"),
        only_nightly("html", "MCP_UNAVAILABLE", "it answered 503: <html>try later</html>"),
    ],
)
async def test_a_bad_answer_ends_its_call_and_no_other(
    serving: Serving, web: WebServer, behaviour: str, code: str, part: str
) -> None:
    async with serving.servers(ToolServer(url=web.url, max_result=24_576)) as servers:
        web.behaviour = behaviour
        error = await serving.error(servers, "echo", repeatable=False)
        assert error.code == code
        assert part in error.message
        web.behaviour = ""
        assert await serving.call(servers, "echo", a=1) == {"a": 1}


@pytest.mark.slow
async def test_a_server_that_forgot_the_session_is_connected_to_again(serving: Serving, web: WebServer) -> None:
    async with serving.servers(ToolServer(url=web.url)) as servers:
        assert await serving.call(servers, "echo", a=1) == {"a": 1}
        web.behaviour = "forgets"
        assert await serving.call(servers, "echo", a=2) == {"a": 2}
    assert web.methods().count("initialize") == 2


async def test_a_server_cannot_lead_the_worker_to_an_address_that_is_not_public(
    serving: Serving, web: WebServer
) -> None:
    web.needs_token = True
    with web_server() as inner:
        web.issuer = inner.origin
        async with serving.servers(ToolServer(url=web.url, oauth=OAuth(grant="authorization_code"))) as servers:
            await serving.error(servers, "echo")
        assert inner.asked == []


@pytest.mark.slow
@pytest.mark.parametrize("private", [False, True])
async def test_a_name_that_leads_into_a_private_network_has_to_be_opened(
    serving: Serving, web: WebServer, private: bool
) -> None:
    """Whoever owns a name can have it lead to this machine: the worker's own servers stay closed in any case."""
    own = (Endpoint("127.0.0.1", 7233, (ip_address("127.0.0.1"),)),)
    place = Serving(serving.place, addresses=AddressPolicy((), lambda: own, leads_here))
    port = urlsplit(web.url).port
    named = {"x": server_at(port, private=private), "own": server_at(7233, private=private)}
    async with place.servers(named) as servers:
        if private:
            assert await place.call(servers, "echo", a=1) == {"a": 1}
        else:
            error = await place.error(servers, "echo")
            assert error.code == "MCP_UNAVAILABLE"
            assert "or set `private = true` for this server in mcp.toml" in error.message
        with pytest.raises(ToolError, match=r"a server of the worker itself|not a public address"):
            await servers.list_tools("own")


def server_at(port: int | None, *, private: bool) -> ToolServer:
    """A server at a name, without a certificate: what mcp.toml refuses is not in question here."""
    return ToolServer(url=f"http://tools.example:{port}/mcp", private=private)


async def leads_here(_host: str, _port: int) -> list[str]:
    """Every name leads to this machine."""
    return ["127.0.0.1"]


async def test_the_stored_tokens_of_a_login_are_private_and_for_one_url(serving: Serving) -> None:
    state = serving.place / "state"
    stored = StoredTokens(state, "x", "https://a.example/mcp")
    assert await stored.get_tokens() is None
    await stored.set_tokens(OAuthToken(access_token=TOKEN))
    assert (stored.path.stat().st_mode & 0o777) == 0o600
    found = await stored.get_tokens()
    assert found is not None
    assert found.access_token == TOKEN
    assert await StoredTokens(state, "x", "https://b.example/mcp").get_tokens() is None
    stored.path.chmod(0o644)
    assert await stored.get_tokens() is None
