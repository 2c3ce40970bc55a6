"""A call that asks a person in rounds: any server of the state directory takes it up, for the same caller only."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, CallToolResult, ElicitResult, InputRequiredResult
from temporalio.client import Client as Temporal
from temporalio.worker import Worker

from plansurvive.apps.mcp.common.host import Host
from plansurvive.apps.mcp.common.rounds import KEY_FILE, round_key
from plansurvive.apps.mcp.server import build
from plansurvive.client import runs
from plansurvive.runtime.server import HOST
from tests.apps.mcp.http.reached import Page, reached
from tests.apps.mcp.tasks.agent import refuses

STEP = {"id": "w", "tool": "write_file", "args": {"path": "a.txt", "content": "x"}, "requiresApproval": True}


@asynccontextmanager
async def server(host: Host) -> AsyncIterator[Client]:
    """A client of another server of a host."""
    async with Client(build(host), elicitation_callback=refuses) as client:
        yield client


async def started(client: Client, temporal: Temporal) -> str:
    """A plan that awaits an approval."""
    found = await client.session.call_tool("plan_start", {"plan": {"steps": [STEP]}, "wait": 20})
    plan: str = (found.structured_content or {})["planId"]
    assert [each.step_id for each in (await runs.brief(temporal, plan)).pending] == ["w"]
    return plan


async def sent(
    client: Client, plan: str, keys: Mapping[str, Any] = {}, state: str | None = None
) -> CallToolResult | InputRequiredResult:
    """One round of plan_decide: approving what has these keys."""
    replies: dict[str, Any] = {key: ElicitResult(action="accept", content={"decision": "approve"}) for key in keys}
    return await client.session.call_tool(
        "plan_decide", {"planId": plan}, allow_input_required=True, input_responses=replies or None,
        request_state=state,
    )  # fmt: skip


async def asked(client: Client, plan: str) -> tuple[Mapping[str, Any], str]:
    """The first round: what it asks, and the state to send back."""
    found = await sent(client, plan)
    assert isinstance(found, InputRequiredResult)
    assert found.request_state
    return found.input_requests or {}, found.request_state


async def refused(client: Client, plan: str, keys: Mapping[str, Any], state: str) -> None:
    """The round is refused by the protocol."""
    with pytest.raises(MCPError) as error:
        await sent(client, plan, keys, state)
    assert error.value.error.code == INVALID_PARAMS


async def test_another_server_of_the_state_directory_takes_up_what_the_first_one_asked(
    host: Host, worker: Worker, temporal_client: Temporal
) -> None:
    async with server(host) as first:
        plan = await started(first, temporal_client)
        keys, state = await asked(first, plan)
    async with server(replace(host)) as second:
        found = await sent(second, plan, keys, state)
    assert isinstance(found, CallToolResult)
    step = (await runs.show(temporal_client, plan)).steps[0]
    assert step.decision is not None
    assert (step.decision.approved, step.decision.by) == (True, "ann")


def tampered(state: str) -> str:
    """The same with one character changed."""
    place = len(state) // 2
    return state[:place] + ("A" if state[place] != "A" else "B") + state[place + 1 :]


async def test_a_reply_without_the_state_of_its_own_call_decides_nothing(
    host: Host, worker: Worker, temporal_client: Temporal, tmp_path: Path
) -> None:
    async with server(host) as client:
        plan, other = [await started(client, temporal_client) for _ in range(2)]
        keys, state = await asked(client, plan)
        _, of_other = await asked(client, other)
        again = await sent(client, plan, keys)  # with the right keys, but as if nobody had been asked
        assert isinstance(again, InputRequiredResult)
        for wrong in (of_other, tampered(state), "v1.AAAA", "x"):
            await refused(client, plan, keys, wrong)
    bob = replace(host, user="bob")
    elsewhere = replace(host, settings=host.settings.model_copy(update={"state_dir": tmp_path / "other"}))
    for changed in (bob, elsewhere):
        async with server(changed) as client:
            await refused(client, plan, keys, state)
    assert (await runs.show(temporal_client, plan)).steps[0].decision is None
    for each in (plan, other):
        await runs.cancel(temporal_client, each)


async def test_a_state_is_of_no_use_to_a_client_that_cannot_ask(
    host: Host, worker: Worker, temporal_client: Temporal
) -> None:
    async with server(host) as client, Client(build(host)) as agent:
        plan = await started(client, temporal_client)
        keys, state = await asked(client, plan)
        assert isinstance(await sent(agent, plan, keys, state), CallToolResult)
    assert (await runs.show(temporal_client, plan)).steps[0].decision is None
    await runs.cancel(temporal_client, plan)


@pytest.mark.slow
@pytest.mark.in_turn
async def test_the_state_of_one_person_is_of_no_use_to_another_over_http(
    temporal_client: Temporal, worker: Worker, queue: str, state_dir: Path, workspace: Path
) -> None:
    environ = {
        "PLANS_STATE_DIR": str(state_dir), "PLANS_WORKSPACE": str(workspace), "PLANS_TASK_QUEUE": queue,
        "PLANS_AUTO_WORKER": "off", "PLANS_WEB_PROXY_HEADER": "X-User", "PLANS_WEB_PROXY_FROM": HOST,
        "PLANS_WEB_ROLES": "ann=operator,bob=operator",
    }  # fmt: skip
    async with reached(environ, temporal_client) as page, of(page, "ann") as ann, of(page, "bob") as bob:
        plan = await started(ann, temporal_client)
        keys, state = await asked(ann, plan)
        await refused(bob, plan, keys, state)
        assert (await runs.brief(temporal_client, plan)).pending
        async with reached(environ, temporal_client) as next_page, of(next_page, "ann") as later:
            assert isinstance(await sent(later, plan, keys, state), CallToolResult)
    decision = (await runs.show(temporal_client, plan)).steps[0].decision
    assert decision is not None
    assert (decision.by, decision.via, decision.verified) == ("ann", "mcp", False)


@asynccontextmanager
async def of(page: Page, person: str) -> AsyncIterator[Client]:
    """The agent of a person, who can be asked."""
    async with (
        httpx2.AsyncClient(headers={"X-User": person}) as http,
        Client(streamable_http_client(f"{page.origin}/mcp", http_client=http), elicitation_callback=refuses) as client,
    ):
        yield client


async def test_with_a_key_that_others_may_read_nobody_is_asked_and_the_answer_says_why(
    host: Host, worker: Worker, temporal_client: Temporal
) -> None:
    round_key(host.settings)
    (host.settings.state_dir / KEY_FILE).chmod(0o644)
    async with server(host) as client:
        plan = await started(client, temporal_client)
        found = await sent(client, plan)
    assert isinstance(found, CallToolResult)
    assert KEY_FILE in (found.structured_content or {})["message"]
    await runs.cancel(temporal_client, plan)
