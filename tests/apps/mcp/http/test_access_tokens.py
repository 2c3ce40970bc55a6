"""Access tokens of the issuer: which of them open the MCP server, and what their person may do there."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from joserfc import jwt
from mcp.shared.exceptions import MCPError
from temporalio.client import Client
from temporalio.worker import Worker

from plansurvive.client.ids import workflow_id
from plansurvive.runtime.settings import Settings
from tests.apps.mcp.http.reached import Page, reached
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

PLAN = {"steps": [{"id": "a", "tool": "sleep", "args": {"seconds": 0}}]}
Make = Callable[[Issuer, Claims], str]


@pytest_asyncio.fixture
async def issuer() -> AsyncIterator[Issuer]:
    async with serving() as found:
        yield found


@pytest_asyncio.fixture
async def page(
    issuer: Issuer, temporal_client: Client, queue: str, state_dir: Path, workspace: Path
) -> AsyncIterator[Page]:
    environ = {
        "PLANS_STATE_DIR": str(state_dir), "PLANS_WORKSPACE": str(workspace), "PLANS_TASK_QUEUE": queue,
        "PLANS_AUTO_WORKER": "off", "PLANS_WEB_OIDC_ISSUER": issuer.url, "PLANS_WEB_OIDC_CLIENT_ID": CLIENT,
        "PLANS_WEB_OIDC_SECRET_ENV": "OF_CLIENT", "OF_CLIENT": SECRET,
        "PLANS_WEB_ROLES": "ann@example.org=operator,vic@example.org=viewer,*=none",
    }  # fmt: skip
    async with reached(environ, temporal_client) as found:
        yield found


def claims(issuer: Issuer, page: Page, email: str = "ann@example.org", **more: Any) -> Claims:
    """The claims of a good access token."""
    now = int(time.time())
    return {
        "iss": issuer.url, "sub": email, "aud": f"{page.origin}/mcp", "iat": now, "exp": now + 300,
        "client_id": "an-agent", "email": email, **more,
    }  # fmt: skip


async def test_an_agent_learns_who_gives_tokens_and_is_let_in_with_one(
    issuer: Issuer, page: Page, worker: Worker, temporal_client: Client
) -> None:
    asked = (await page.asked()).headers["www-authenticate"]
    place = f"{page.origin}/.well-known/oauth-protected-resource/mcp"
    assert f'resource_metadata="{place}"' in asked
    about = (await page.asked("GET", "/.well-known/oauth-protected-resource/mcp")).json()
    assert (about["resource"], about["authorization_servers"]) == (f"{page.origin}/mcp", [issuer.url])
    async with page.agent(issuer.token(claims(issuer, page))) as agent:
        started = await agent.call_tool("plan_start", {"plan": PLAN, "wait": 30})
        assert started.structured_content is not None, started
        name = started.structured_content["planId"]
        handle = temporal_client.get_workflow_handle(workflow_id(name))
        await handle.result()
        again = await agent.call_tool("plan_rerun", {"planId": name, "only": "a"})
        assert again.structured_content is not None, again
    later = temporal_client.get_workflow_handle(workflow_id(again.structured_content["planId"]))
    # The page's key signs both, if it has one: the login has proven who they are for.
    options, others = (await handle.query("state"))["options"], (await later.query("state"))["options"]
    assert (options["by"], options["vouched"]) == ("ann@example.org", True)
    assert (others["continuedBy"], others["vouched"]) == ("ann@example.org", True)


async def test_a_viewer_is_offered_what_only_reads_and_starts_nothing(
    issuer: Issuer, page: Page, worker: Worker
) -> None:
    async with page.agent(issuer.token(claims(issuer, page, "vic@example.org"))) as agent:
        tools = (await agent.list_tools()).tools
        assert {"plan_show", "plan_tools"} <= {each.name for each in tools}
        assert all(each.annotations and each.annotations.read_only_hint for each in tools)
        with pytest.raises(MCPError, match="FORBIDDEN: plan_start needs the role operator"):
            await agent.call_tool("plan_start", {"plan": PLAN})
        assert not (await agent.call_tool("plan_tools", {})).is_error


def _without(name: str) -> Make:
    return lambda issuer, found: issuer.token({each: value for each, value in found.items() if each != name})


def _with(**more: Any) -> Make:
    return lambda issuer, found: issuer.token(found | more)


def _typed(typ: str) -> Make:
    return lambda issuer, found: jwt.encode({"alg": "RS256", "kid": issuer.key.kid, "typ": typ}, found, issuer.key)


LIES: dict[str, Make] = {
    "an ID token of the page": _with(aud=CLIENT),
    "for another resource": _with(aud="https://evil.example/mcp"),
    "for the page as a whole": lambda issuer, found: issuer.token(found | {"aud": found["aud"].removesuffix("/mcp")}),
    "for nothing": _without("aud"),
    "of another issuer": _with(iss="https://evil.example"),
    "of no issuer": _without("iss"),
    "expired": _with(exp=int(time.time()) - 300),
    "not valid yet": _with(nbf=int(time.time()) + 3_600),
    "without an end": _without("exp"),
    "of nobody": _without("sub"),
    "without a name": _without("email"),
    "an address that is not verified": _with(email_verified=False),
    "bound to a key": _with(cnf={"jkt": "x"}),
    "a proof, not a token": _typed("dpop+jwt"),
    "a logout": _typed("logout+jwt"),
    "unsigned": unsigned,
    "by another key": by_another_key,
    "by another kind of key": by_another_kind_of_key,
    "by the public key": by_public_key,
    "by the client's secret": by_client_secret,
    "not a token": lambda _issuer, _claims: "a.b.c",
}


async def test_no_false_token_is_let_in(issuer: Issuer, page: Page) -> None:
    for name, make in LIES.items():
        answer = await page.asked(Authorization=f"Bearer {make(issuer, claims(issuer, page))}")
        assert (answer.status_code, "invalid_token" in answer.text) == (401, True), (name, answer.text)
    for typ in ("at+jwt", "application/at+jwt", "JWT"):
        good = await page.asked(Authorization=f"Bearer {_typed(typ)(issuer, claims(issuer, page))}")
        assert good.status_code not in (401, 403), (typ, good.text)


async def test_somebody_without_a_role_is_refused_with_a_good_token(issuer: Issuer, page: Page) -> None:
    answer = await page.asked(Authorization=f"Bearer {issuer.token(claims(issuer, page, 'bob@example.org'))}")
    assert (answer.status_code, "bob@example.org is not allowed to use this page" in answer.text) == (403, True)


async def test_the_session_of_one_person_is_no_session_of_another(issuer: Issuer, page: Page) -> None:
    body = {
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"},
        },
    }  # fmt: skip
    ann = {"Authorization": f"Bearer {issuer.token(claims(issuer, page))}"}
    vic = {"Authorization": f"Bearer {issuer.token(claims(issuer, page, 'vic@example.org'))}"}
    begun = await page.sent(body, **ann)
    session = {"Mcp_Session_Id": begun.headers["mcp-session-id"], "MCP_Protocol_Version": "2025-11-25"}
    assert (await page.asked(**vic, **session)).status_code == 404
    assert (await page.asked(**ann, **session)).status_code == 200


def test_the_pages_client_id_cannot_be_the_audience(tmp_path: Path) -> None:
    environ = {
        "HOME": str(tmp_path), "PLANS_WEB_OIDC_ISSUER": "https://issuer.example", "PLANS_WEB_OIDC_CLIENT_ID": CLIENT,
        "PLANS_WEB_MCP_AUDIENCE": CLIENT,
    }  # fmt: skip
    problem = Settings.read(environ).web_problem()
    assert "ID tokens" in problem["PLANS_WEB_MCP_AUDIENCE"]
