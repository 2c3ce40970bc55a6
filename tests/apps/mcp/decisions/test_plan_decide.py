"""A person decides during a call, whether a client is asked, or is answered with what to ask, or can ask nobody."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from mcp import Client
from mcp.types import ElicitRequestFormParams, ElicitResult
from temporalio.client import Client as Temporal
from temporalio.worker import Worker

from plansurvive.apps.mcp.common.host import Host
from plansurvive.apps.mcp.server import build
from plansurvive.client import runs

STEPS: list[dict[str, Any]] = [
    {"id": "q", "tool": "ask", "args": {"question": "How many?", "schema": {"type": "integer", "maximum": 9}}},
    {"id": "w", "tool": "write_file", "args": {"path": "a.txt", "content": "{{q}}"}, "requiresApproval": True},
]


class Person:
    """Fills in forms, at first wrongly."""

    def __init__(self, action: Literal["accept", "decline"] = "accept") -> None:
        self.asked: list[str] = []
        self._action = action

    async def __call__(self, context: Any, params: Any) -> ElicitResult:
        del context
        assert isinstance(params, ElicitRequestFormParams)
        self.asked.append(params.message)
        if self._action == "decline":
            return ElicitResult(action="decline")
        if "answer" in params.requested_schema["properties"]:
            return ElicitResult(action="accept", content={"answer": 3 if "Not accepted" in params.message else 30})
        return ElicitResult(action="accept", content={"decision": "approve"})


async def _decided(client: Client, plan: str) -> str:
    found = await client.call_tool("plan_decide", {"planId": plan})
    assert not found.is_error, found
    return "\n".join(getattr(each, "text", "") for each in found.content)


async def _started(client: Client, temporal: Temporal, steps: list[dict[str, Any]]) -> str:
    found = await client.call_tool("plan_start", {"plan": {"steps": steps}})
    plan: str = (found.structured_content or {})["planId"]
    async for _ in runs.changes(temporal, plan):
        if (await runs.brief(temporal, plan)).pending:
            break
    return plan


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
async def test_the_person_is_asked_during_the_call_and_again_with_the_reason_after_a_wrong_answer(
    host: Host, worker: Worker, temporal_client: Temporal, mode: Any
) -> None:
    person = Person()
    async with Client(build(host), elicitation_callback=person, mode=mode) as client:
        plan = await _started(client, temporal_client, STEPS)
        while (await runs.brief(temporal_client, plan)).status == "running":
            await _decided(client, plan)
    assert [("How many?" in each, "Not accepted" in each) for each in person.asked] == [
        (True, False), (True, True), (False, False),
    ]  # fmt: skip
    steps = (await runs.show(temporal_client, plan)).steps
    assert steps[0].answer is not None
    assert steps[1].decision is not None
    assert (steps[0].answer.via, steps[1].decision.via, steps[1].decision.by) == ("mcp", "mcp", "ann")


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
async def test_a_person_who_declines_decides_nothing_and_the_agent_learns_where_they_can(
    host: Host, worker: Worker, temporal_client: Temporal, mode: Any
) -> None:
    person = Person("decline")
    async with Client(build(host), elicitation_callback=person, mode=mode) as client:
        plan = await _started(client, temporal_client, STEPS[:1])
        said = await _decided(client, plan)
    assert "not decided here" in said
    assert f"plan pending {plan}" in said
    assert len(person.asked) == 1
    await runs.cancel(temporal_client, plan)


async def test_a_client_that_cannot_ask_gets_no_form_and_no_argument_decides(
    host: Host, worker: Worker, temporal_client: Temporal
) -> None:
    async with Client(build(host)) as client:
        plan = await _started(client, temporal_client, STEPS[:1])
        assert f"plan pending {plan}" in await _decided(client, plan)
        forged = await client.call_tool("plan_decide", {"planId": plan, "inputResponses": {"q": 3}})
        assert forged.is_error
        assert (await runs.brief(temporal_client, plan)).pending
    await runs.cancel(temporal_client, plan)


async def test_where_nothing_is_decided_through_clients_there_is_no_such_tool(host: Host) -> None:
    host.deciding = "elsewhere"
    async with Client(build(host)) as client:
        assert "plan_decide" not in {tool.name for tool in (await client.list_tools()).tools}
