"""`plan mcp` as agents start it: a process that speaks MCP on standard output and nothing else, and ends in order."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client as Agent
from mcp.client.stdio import StdioServerParameters, stdio_client
from temporalio.worker import Worker

from plansurvive.apps.mcp.common.host import Host
from tests.apps.mcp.agents import agent_of, called, refused
from tests.kit.waiting import PATIENCE, until

COMMAND = ("-m", "plansurvive", "mcp")
HELLO = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}  # fmt: skip
PRINTS = """
import os
from plansurvive.activities.tools.tool import tool
print("printed while it is imported")
print("printed without an end", end="")
os.system("echo printed by a child")

@tool
def loud() -> str:
    \"\"\"Say something.\"\"\"
    return "loud"
"""


@asynccontextmanager
async def process(environ: Mapping[str, str]) -> AsyncIterator[asyncio.subprocess.Process]:
    pipe = asyncio.subprocess.PIPE
    running = await asyncio.create_subprocess_exec(
        sys.executable, *COMMAND, stdin=pipe, stdout=pipe, stderr=pipe, env=dict(environ)
    )
    try:
        yield running
    finally:
        if running.returncode is None:
            running.kill()
        await running.wait()


async def greeted(running: asyncio.subprocess.Process) -> dict[str, Any]:
    """The answer to the first message."""
    assert running.stdin is not None
    assert running.stdout is not None
    running.stdin.write(json.dumps(HELLO).encode() + b"\n")
    return dict(json.loads(await asyncio.wait_for(running.stdout.readline(), PATIENCE)))


@pytest.mark.slow
@pytest.mark.sampled
async def test_an_agent_starts_the_command_and_a_plan_survives_its_end(
    environ: dict[str, str], host: Host, worker: Worker, workspace: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (workspace / "loud.py").write_text(PRINTS)
    environ |= {"PYTHONPATH": f"{environ['PYTHONPATH']}:{workspace}", "PLANS_TOOLS": "loud"}
    server = StdioServerParameters(command=sys.executable, args=list(COMMAND), env=environ)
    steps = [{"id": "a", "tool": "delete_file", "args": {"path": "loud.py"}}]
    async with Agent(stdio_client(server)) as agent:
        assert len((await called(agent, "plan_tools"))["tools"]) > 10  # the module of tools prints
        plan = (await called(agent, "plan_start", plan={"steps": steps}, wait=20))["planId"]
        assert (await refused(agent, "plan_approve", planId=plan, stepId="a", digest="0" * 64))[0] == "FORBIDDEN"
    async with agent_of(host) as agent:
        shown = await called(agent, "plan_show", planId=plan)
        assert shown["awaits"] == ["a"]
        await called(agent, "plan_cancel", planId=plan)
    assert "Failed to parse" not in caplog.text  # as the client says of a line that is no message


@pytest.mark.slow
@pytest.mark.parametrize(
    ("end", "code"),
    [
        pytest.param(lambda running: running.stdin.close(), 0, id="end of input"),
        pytest.param(lambda running: running.terminate(), 130, id="SIGTERM"),
        pytest.param(lambda running: running.send_signal(signal.SIGINT), 130, id="SIGINT"),
    ],
)
async def test_it_ends_in_order(
    environ: dict[str, str], end: Callable[[asyncio.subprocess.Process], None], code: int
) -> None:
    async with process(environ) as running:
        assert (await greeted(running))["result"]["serverInfo"]["name"] == "plans"
        end(running)
        assert running.stdout is not None
        assert running.stderr is not None
        assert await asyncio.wait_for(running.stdout.read(), PATIENCE) == b""
        assert b"Traceback" not in await running.stderr.read()
        assert await running.wait() == code


@pytest.mark.slow
async def test_it_ends_when_nobody_reads_what_it_says(environ: dict[str, str]) -> None:
    async with process(environ) as running:
        await greeted(running)
        transport = running._transport.get_pipe_transport(1)  # type: ignore[attr-defined]
        transport.close()
        await until(lambda: running.returncode is not None, "it ends")
        assert running.stderr is not None
        assert b"Traceback" not in await running.stderr.read()


@pytest.mark.slow
async def test_without_a_server_to_reach_a_call_says_what_to_do(environ: dict[str, str]) -> None:
    server = StdioServerParameters(
        command=sys.executable, args=list(COMMAND), env=environ | {"TEMPORAL_ADDRESS": "127.0.0.1:1"}
    )
    async with Agent(stdio_client(server)) as agent:
        code, text = await refused(agent, "plan_list")
    assert (code, "TEMPORAL_ADDRESS" in text) == ("NOT_CONNECTED", True)
