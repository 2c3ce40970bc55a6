"""Tasks over HTTP, behind a proxy that says who it is: who may decide is asked, and requests name their task."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.types import HEADER_MISMATCH
from temporalio.client import Client as Temporal
from temporalio.worker import Worker

from plansurvive.apps.mcp.roles import REFUSED
from plansurvive.client import runs
from plansurvive.runtime.server import HOST
from tests.apps.mcp.http.reached import Page, reached
from tests.apps.mcp.tasks.agent import accepted, agent, cancel, got, started, until_status, update

GATED = {"steps": [{"id": "q", "tool": "ask", "args": {"question": "Why?"}}]}


@pytest_asyncio.fixture
async def page(temporal_client: Temporal, queue: str, state_dir: Path, workspace: Path) -> AsyncIterator[Page]:
    """A page with an operator, who may decide as well, and a viewer."""
    environ = {
        "PLANS_STATE_DIR": str(state_dir), "PLANS_WORKSPACE": str(workspace), "PLANS_TASK_QUEUE": queue,
        "PLANS_AUTO_WORKER": "off", "PLANS_WEB_PROXY_HEADER": "X-User", "PLANS_WEB_PROXY_FROM": HOST,
        "PLANS_WEB_ROLES": "ann=operator,vic=viewer",
    }  # fmt: skip
    async with reached(environ, temporal_client) as found:
        yield found


@asynccontextmanager
async def of(page: Page, person: str) -> AsyncIterator[Client]:
    """The agent of a person."""
    async with (
        httpx2.AsyncClient(headers={"X-User": person}) as http,
        agent(streamable_http_client(f"{page.origin}/mcp", http_client=http)) as client,
    ):
        yield client


async def test_only_a_person_who_may_decide_is_asked_and_counts(
    page: Page, worker: Worker, temporal_client: Temporal
) -> None:
    async with of(page, "ann") as ann, of(page, "vic") as vic:
        task = (await started(ann, plan=GATED)).task_id
        [key] = (await until_status(ann, task, "input_required")).input_requests
        seen = await got(vic, task)
        assert (seen.status, seen.input_requests) == ("working", {})
        for change in (update(vic, task, {key: accepted(answer="x")}), cancel(vic, task)):
            with pytest.raises(MCPError) as refused:
                await change
            assert refused.value.error.code == REFUSED
        await update(ann, task, {key: accepted(answer="because")})
        await until_status(ann, task, "completed")
    answer = (await runs.show(temporal_client, task)).steps[0].answer
    assert answer is not None
    assert (answer.by, answer.via, answer.verified) == ("ann", "mcp", False)


async def test_a_request_whose_header_names_another_task_is_refused(page: Page, worker: Worker) -> None:
    async with of(page, "ann") as ann:
        task = (await started(ann, plan=GATED)).task_id
        meta: dict[str, Any] = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "0"},
            "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}},
        }
        body = {"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"taskId": task, "_meta": meta}}
        head = {"X_User": "ann", "MCP_Protocol_Version": "2026-07-28", "Mcp_Method": "tasks/get"}
        assert (await page.sent(body, **head, Mcp_Name=task)).json()["result"]["taskId"] == task
        for wrong in ({"Mcp_Name": "other"}, {}):
            found = await page.sent(body, **head, **wrong)
            assert (found.status_code, found.json()["error"]["code"]) == (400, HEADER_MISMATCH)
        await cancel(ann, task)
