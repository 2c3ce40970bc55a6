"""Servers that send too much, or what is no message: disconnected with a sentence, and started again when needed."""

from __future__ import annotations

from typing import Any

import pytest

from plansurvive.features.tool_servers.flow import MESSAGES, PER_SECOND, Flow
from plansurvive.features.tool_servers.log import MAX_FILE
from plansurvive.plans.errors import ToolError
from tests.features.tool_servers.serving import Serving, raw
from tests.nightly import only_nightly


def test_messages_are_counted_and_the_budget_fills_up_again() -> None:
    now = [0.0]
    flow = Flow("x", lambda: now[0])
    for _ in range(MESSAGES):
        flow.add()
    with pytest.raises(ToolError, match="at once, so it was disconnected"):
        flow.add()
    now[0] += 2
    for _ in range(PER_SECOND):
        flow.add()


@pytest.mark.parametrize(
    ("tool", "args", "code", "part"),
    [
        ("flood", {}, "MCP_LIMIT", "5,000 messages at once"),
        ("huge", {"many": 200_000}, "MCP_LIMIT", "a message of more than 98,304 bytes"),
        only_nightly("huge", {"many": 30_000}, "MCP_LIMIT", "it has 30,002 bytes, the maximum is 24,576"),
        only_nightly("endless_line", {}, "MCP_LIMIT", "a message of more than"),
        only_nightly("deep", {"many": 10_000}, "MCP_PROTOCOL", "a message that is not valid JSON-RPC"),
        ("half", {}, "MCP_PROTOCOL", "a message that is not valid JSON-RPC"),
        only_nightly("chatter", {"many": 300}, "MCP_PROTOCOL", "more than 200 lines that are no messages"),
        only_nightly("nested", {"many": 100}, "BAD_VALUE", "nested deeper than 64"),
    ],
)
async def test_a_flood_ends_the_call_with_a_sentence_and_the_next_call_is_served(
    serving: Serving, tool: str, args: dict[str, Any], code: str, part: str
) -> None:
    async with serving.servers(raw(max_result=24_576)) as servers:
        error = await serving.error(servers, tool, **args)
        assert (error.code, error.retryable) == (code, False)
        assert part in error.message
        assert await serving.call(servers, "echo", a=1) == {"a": 1}


@pytest.mark.slow
async def test_what_a_program_prints_at_its_start_goes_to_the_log_and_harms_nothing(serving: Serving) -> None:
    async with serving.servers(raw("--banner")) as servers:
        assert await serving.call(servers, "chatter", many=10) == "done"
    assert "(stdout) Welcome!" in (serving.place / "state" / "mcp" / "x.log").read_text()


@pytest.mark.slow
async def test_a_huge_standard_error_is_bounded_and_does_not_stop_the_server(serving: Serving) -> None:
    async with serving.servers(raw()) as servers:
        assert await serving.call(servers, "screams", many=6_000) == "done"
        assert await serving.call(servers, "tells", said="well") == "well"
    logs = list((serving.place / "state" / "mcp").iterdir())
    assert sum(each.stat().st_size for each in logs) <= 2 * MAX_FILE


async def test_a_list_of_tools_without_end_is_refused(serving: Serving) -> None:
    async with serving.servers(raw("--endless")) as servers:
        with pytest.raises(ToolError, match="a list of tools without end") as caught:
            await servers.list_tools("x")
    assert caught.value.code == "MCP_LIMIT"
