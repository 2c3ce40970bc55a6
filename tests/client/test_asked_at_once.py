"""A plan that many ask at once while its workflow task is with a worker that does not answer: each gets its answer."""

from __future__ import annotations

import asyncio
import signal
from datetime import timedelta
from pathlib import Path

import pytest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from plansurvive.client import runs
from plansurvive.client.ids import workflow_id
from plansurvive.client.rpc import PATIENCE, ask
from plansurvive.runtime.task_queues import listeners
from tests.client.cli.command import plan, running, written
from tests.kit.waiting import until

ASKING = 6


@pytest.mark.slow
async def test_queries_that_the_server_refuses_for_the_moment_are_asked_again(
    environ: dict[str, str], queue: str, temporal_client: Client, tmp_path: Path
) -> None:
    file = written(tmp_path / "plan.json", {"steps": [{"id": "a", "tool": "ask", "args": {"question": "Now?"}}]})
    async with running(environ, "worker") as worker:
        await until(lambda: listeners(temporal_client, queue), "the worker polls")
        name = (await plan(environ, "start", file, "--json")).json["planId"]
        await until(lambda: _waits(temporal_client, name), "the plan waits")
        worker.send_signal(signal.SIGSTOP)
        await temporal_client.get_workflow_handle(workflow_id(name)).signal("pause", {"by": "ann"})
        asked = [asyncio.create_task(ask(temporal_client, name, "plan", patience=10 * PATIENCE)) for _ in range(ASKING)]
        await until(lambda: _is_refused(temporal_client, name), "the server refuses further queries")
        worker.send_signal(signal.SIGCONT)
        shown = await asyncio.gather(*asked)
    assert {view["status"] for view in shown} == {"paused"}


async def _waits(client: Client, name: str) -> bool:
    return bool((await runs.show(client, name)).pending)


async def _is_refused(client: Client, name: str) -> bool:
    try:
        await client.get_workflow_handle(workflow_id(name)).query("summary", rpc_timeout=timedelta(seconds=1))
    except RPCError as error:
        return error.status is RPCStatusCode.RESOURCE_EXHAUSTED
    return False
