"""kill -9 of the MCP server, the worker and the Temporal server: the same task continues, and its decision counts."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

from plansurvive.runtime.server import HOST
from tests.apps.mcp.tasks.agent import accepted, agent, got, started, until_status, update
from tests.chaos.conftest import ROOT, Chaos
from tests.kit.driving import WAITS, work
from tests.kit.waiting import until

PLAN = {
    "title": "Outlives them all",
    "steps": [
        work("first"),
        {"id": "gate", "tool": "write_file", "args": {"path": "a.txt", "content": "{{first}}"},
         "requiresApproval": True, "dependsOn": ["first"]},
        work("last", "gate", args=WAITS),
    ],
}  # fmt: skip


@asynccontextmanager
async def killed_in_the_end(chaos: Chaos, environ: dict[str, str], tmp_path: Path) -> AsyncIterator[Client]:
    """A client of `plan mcp`, which is killed with -9 where the block ends."""
    pid = tmp_path / "mcp.pid"
    env = environ | {"TEMPORAL_ADDRESS": f"{HOST}:{chaos.server.port}", "PLANS_AUTO_WORKER": "off"}
    command = f'echo $$ > "{pid}"; exec "{sys.executable}" -m plansurvive mcp'
    server = StdioServerParameters(command="/bin/sh", args=["-c", command], env=env, cwd=ROOT)
    is_done = False
    try:
        async with agent(server) as client:
            try:
                yield client
                is_done = True
            finally:
                os.kill(int(pid.read_text()), signal.SIGKILL)
    except BaseExceptionGroup:  # the stream that breaks with its process; or the test itself
        if not is_done:
            raise


@pytest.mark.slow
async def test_a_task_survives_its_server_its_worker_and_temporal_and_takes_the_decision_asked_before(
    chaos: Chaos, environ: dict[str, str], tmp_path: Path
) -> None:
    await chaos.worker.up()
    async with killed_in_the_end(chaos, environ, tmp_path) as client:
        task = (await started(client, plan=PLAN)).task_id
        [(key, request)] = (await until_status(client, task, "input_required")).input_requests.items()
    chaos.worker.kill()
    chaos.server.kill()
    await chaos.server.up()
    async with killed_in_the_end(chaos, environ, tmp_path) as client:
        assert (await got(client, task)).status == "working"  # nobody serves it: it waits
        await chaos.worker.up()
        again = await until_status(client, task, "input_required")
        assert again.input_requests == {key: request}  # the same question, by the same key
        await update(client, task, {key: accepted(decision="approve")})
        await until(lambda: any("last" in line for line in chaos.plans.ledger), "the last step runs")
    chaos.worker.kill()
    await chaos.worker.up()
    chaos.plans.go()
    async with killed_in_the_end(chaos, environ, tmp_path) as client:
        ended = await until_status(client, task, "completed")
        assert ended.result is not None
        assert not ended.result["isError"]
        assert ended.result["structuredContent"]["planId"] == task
