"""Our server with the suite's fixtures, as it is really served: at /mcp of the page, behind its guard.

The suite knows no tokens: what stands in front adds the token that an agent would send, and changes nothing else.
"""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, InputRequiredResult, ListToolsResult
from starlette.types import ASGIApp, Receive, Scope, Send
from temporalio.client import Client, Interceptor, OutboundInterceptor, StartWorkflowInput, WorkflowHandle

from plansurvive.apps.mcp.callers import callers, token
from plansurvive.apps.mcp.common.host import Host
from plansurvive.apps.mcp.endpoint import McpEndpoint, caller
from plansurvive.apps.mcp.entrance import McpEntrance
from plansurvive.apps.mcp.server import build
from plansurvive.apps.mcp.template_tools.calling import Templates
from plansurvive.apps.web.app import application
from plansurvive.apps.web.common.service import Service
from plansurvive.client import runs
from plansurvive.client.access import access_for
from plansurvive.features.templates.find import project_store
from plansurvive.runtime.connect import Connection, Origin
from plansurvive.runtime.server import HOST
from plansurvive.runtime.settings import Settings
from tests.apps.web.access.serving import on_socket
from tests.conformance import asking, resources, talking

PLANS = Path(__file__).parent / "plans"
WITH_TASK, BROKEN = "test_tool_with_task", "protocol_error_job"
TASKS_ONLY = frozenset(("failing_job", WITH_TASK))


@asynccontextmanager
async def served(environ: Mapping[str, str], client: Client) -> AsyncIterator[str]:
    """Serve on a free port; gives the address of the server."""
    with socket.create_server((HOST, 0)) as listening:
        here = f"{HOST}:{listening.getsockname()[1]}"
        settings = Settings.read({**environ, "PLANS_WEB_MCP_TEMPLATES": ",".join(saved(environ))})
        service = Service(settings, environ, access_for(settings, environ, "suite", here))
        service.connection = Connection(client, "tests", Origin.CONFIGURED)
        mcp = _endpoint(service)
        async with on_socket(_with_token(application(service, [mcp]), token(settings)), listening):
            yield f"http://{here}/mcp"
        await service.close()


def saved(environ: Mapping[str, str]) -> list[str]:
    """Save the fixture plans as templates of the workspace; gives their names."""
    store = project_store(Path(environ["PLANS_WORKSPACE"]))
    for path in sorted(PLANS.glob("*.json")):
        store.save(path.stem, path.read_text(), json.loads(path.read_text())["title"])
    return [path.stem for path in sorted(PLANS.glob("*.json"))]


def _endpoint(service: Service) -> McpEndpoint:
    settings = service.settings
    host = Host(
        settings, service.environ, "suite", templates=settings.web_mcp_templates, tasks_only=TASKS_ONLY,
        hub=service.hub, calling=caller, connecting=service.connected,
    )  # fmt: skip
    server = build(host)
    for area in (asking, talking, resources):
        area.register(server)
    server.add_tool(_with_task(host), name=WITH_TASK)
    server.add_tool(_broken(host), name=BROKEN)
    host.starting.update((WITH_TASK, BROKEN))
    server.middleware.append(_schema)
    mcp = McpEndpoint(server, McpEntrance(service.access, callers(service.access, settings), settings))
    resources.register_requests(server)
    return mcp


def _with_task(host: Host) -> Any:
    """A tool that asks for a name, then starts a plan with it: a task, for its client."""

    async def asks_then_starts(ctx: Context[Any, Any]) -> CallToolResult | InputRequiredResult:
        """Asks for a name, then greets in a plan."""
        name = asking.said(ctx, "user_name", "name")
        if name is None:
            return InputRequiredResult(input_requests={"user_name": asking.form("Name?", name="string")})
        found = await Templates(host).call("greeting_of", {"name": name}, ctx)
        assert found is not None
        return found

    return asks_then_starts


def _broken(host: Host) -> Any:
    """A tool whose plan Temporal ends: one that fails says so itself, as a result that is an error of the tool."""

    async def starts_what_times_out(ctx: Context[Any, Any]) -> CallToolResult:
        """Starts a plan that has no time."""
        del ctx
        here = await host.connected(starts=True)
        config = {**here.client.config(), "interceptors": [OneSecond()]}
        plan = {"steps": [{"id": "long", "tool": "sleep", "args": {"seconds": 60}}]}
        started = await runs.start(Client(**config), plan, queue=host.settings.task_queue)  # type: ignore[arg-type]
        return CallToolResult(content=[], structured_content={"planId": started.plan_id})

    return starts_what_times_out


class OneSecond(Interceptor):
    """Gives workflows a second."""

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:
        """As Temporal asks."""
        return _OneSecond(next)


class _OneSecond(OutboundInterceptor):
    async def start_workflow(self, input: StartWorkflowInput) -> WorkflowHandle[Any, Any]:
        input.execution_timeout = timedelta(seconds=1)
        return await super().start_workflow(input)


async def _schema(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Give a fixture tool a schema that no signature has."""
    found = await call_next(ctx)
    if ctx.method != "tools/list" or not isinstance(found, dict | ListToolsResult):
        return found
    listed = ListToolsResult.model_validate(found) if isinstance(found, dict) else found
    for number, each in enumerate(listed.tools):
        if each.name == talking.json_schema_2020_12_tool.__name__:
            listed.tools[number] = each.model_copy(update={"input_schema": talking.SCHEMA_2020_12})
    return listed


def _with_token(app: ASGIApp, token: str) -> ASGIApp:
    async def sending(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope["headers"] = [*scope["headers"], (b"authorization", f"Bearer {token}".encode())]
        await app(scope, receive, send)

    return sending
