"""Calls of tools of a server: what comes back, what is passed on, and what a lost answer means."""

from __future__ import annotations

import asyncio
import json

import pytest

from plansurvive.features.tool_servers.connections import ToolServers
from plansurvive.plans.errors import ToolError
from tests.features.tool_servers.serving import SECRET, Serving, raw


async def test_a_call_returns_structured_content_text_and_pictures(serving: Serving) -> None:
    async with serving.servers(raw()) as servers:
        assert await serving.call(servers, "echo", a=[1, "ü"]) == {"a": [1, "ü"]}
        two = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
        assert await serving.call(servers, "parts", parts=two) == "one\ntwo"
        picture = {"type": "image", "mimeType": "image/png", "data": "aGk="}
        file = {"type": "resource", "resource": {"uri": "file:///a", "mimeType": "text/plain", "text": "hi"}}
        link = {"type": "resource_link", "uri": "https://example.org/b", "name": "b"}
        assert await serving.call(servers, "parts", parts=[two[0], picture, file, link]) == [
            {"text": "one"},
            {"mediaType": "image/png", "data": "aGk="},
            {"uri": "file:///a", "mediaType": "text/plain", "text": "hi"},
            {"uri": "https://example.org/b", "name": "b"},
        ]
        assert await serving.call(servers, "parts", parts=[]) == ""


@pytest.mark.slow
async def test_an_error_of_a_tool_is_the_servers_word_and_is_not_retried(serving: Serving) -> None:
    async with serving.servers(raw()) as servers:
        for tool, said in (("wrong", "that does not work"), ("refuses", "no such argument (code -32602)")):
            error = await serving.error(servers, tool)
            assert (error.code, error.retryable) == ("MCP_ERROR", False)
            assert error.message == f"x.{tool} failed; the server says: {said}"


async def test_progress_of_a_server_is_shown_while_it_runs_on_one_line(serving: Serving) -> None:
    context = serving.context()
    async with serving.servers(raw()) as servers:
        assert await servers.call("x", "progress", {}, context=context) == "done"
    assert context.line == "part 3 [31m"
    assert context.percent == 75


async def test_a_server_that_dies_in_a_call_is_started_again_and_its_outcome_is_unknown(serving: Serving) -> None:
    async with serving.servers(raw()) as servers:
        error = await serving.error(servers, "die", repeatable=False)
        assert (error.code, error.retryable) == ("OUTCOME_UNKNOWN", False)
        assert "all or part of it may have happened" in error.message
        assert await serving.call(servers, "echo", a=1) == {"a": 1}
        error = await serving.error(servers, "die", repeatable=True)
        assert (error.code, error.retryable) == ("MCP_LOST", True)
        assert "it hurts" in error.message
        assert await serving.call(servers, "echo", a=2) == {"a": 2}


async def test_a_cancelled_call_is_cancelled_at_the_server_which_then_serves_others(serving: Serving) -> None:
    async with serving.servers(raw()) as servers:
        call = asyncio.create_task(serving.call(servers, "hang"))
        while "hang" not in await seen_by(serving, servers):
            assert not call.done()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert "notifications/cancelled" in await seen_by(serving, servers)


async def seen_by(serving: Serving, servers: ToolServers) -> list[str]:
    """The notifications and calls that came to the server."""
    return [each["method"] for each in (await serving.call(servers, "seen"))["seen"]]


@pytest.mark.slow
async def test_a_call_over_its_time_limit_is_cancelled_and_its_server_kept_if_it_is_alive(serving: Serving) -> None:
    async with serving.servers(raw(timeout=10.0)) as servers:
        pid = (await serving.call(servers, "pid", seconds="0"))["pid"]
        error = await serving.error(servers, "hang", repeatable=False)
        assert (error.code, error.retryable) == ("MCP_TIMEOUT", False)
        assert "took longer than 10 seconds" in error.message
        assert "notifications/cancelled" in await seen_by(serving, servers)
        assert (await serving.call(servers, "pid", seconds="0"))["pid"] == pid


@pytest.mark.slow
async def test_a_server_that_asks_a_person_or_a_model_is_declined(serving: Serving) -> None:
    async with serving.servers(raw()) as servers:
        for method in ("elicitation/create", "sampling/createMessage", "roots/list"):
            answer = json.loads(await serving.call(servers, "asks", method=method))
            assert "not supported" in answer["message"]


@pytest.mark.slow
async def test_a_server_that_was_granted_the_workspace_is_told_where_it_is(serving: Serving) -> None:
    async with serving.servers(raw(workspace="read")) as servers:
        answer = json.loads(await serving.call(servers, "asks", method="roots/list"))
    assert answer == {"roots": [{"uri": serving.workspace.as_uri(), "name": "workspace"}]}


@pytest.mark.slow
async def test_secrets_of_mcp_toml_are_masked_in_errors_and_in_the_log(serving: Serving) -> None:
    place = Serving(serving.place, {"TOKEN": SECRET})
    async with place.servers(raw(env={"GIVEN": "env:TOKEN"})) as servers:
        seen = await place.call(servers, "look", paths=[])
        assert seen["env"]["GIVEN"] == SECRET
        assert "TOKEN" not in seen["env"]
        await place.call(servers, "tells", said=f"the key is {SECRET}")
        error = await place.error(servers, "die")
    assert SECRET not in error.message
    log = (serving.place / "state" / "mcp" / "x.log").read_text()
    assert "the key is [secret]" in log
    assert SECRET not in log


@pytest.mark.slow
async def test_only_the_tools_that_mcp_toml_lets_through_are_listed_and_called(serving: Serving) -> None:
    async with serving.servers(raw(tools=["e*", "d*"], deny=["die"])) as servers:
        assert [tool.name for tool in await servers.list_tools("x")] == ["echo"]
        error = await serving.error(servers, "die")
        assert (error.code, error.retryable) == ("MCP_NO_TOOL", False)
        with pytest.raises(ToolError, match="the worker's file has no such server"):
            await servers.list_tools("y")


@pytest.mark.slow
async def test_many_calls_at_once_share_one_process(serving: Serving) -> None:
    async with serving.servers(raw()) as servers:
        found = await asyncio.gather(*(serving.call(servers, "pid", seconds="0") for _ in range(20)))
    assert len({each["pid"] for each in found}) == 1
