"""What a request must bring to be about tasks: the extension, declared on that request, and the routing header.

The extension is of the protocol's version 2026-07-28, in which clients declare their capabilities with each request.
"""

from __future__ import annotations

from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types import HEADER_MISMATCH

TASKS = "io.modelcontextprotocol/tasks"
NAME_HEADER = "mcp-name"
VERSIONS = frozenset({"2026-07-28"})

Request = ServerRequestContext[Any, Any]


def takes_tasks(ctx: Request) -> bool:
    """Whether the client of this request can be answered with a task."""
    capabilities = ctx.session.client_capabilities
    declared = capabilities.extensions if capabilities else None
    return ctx.protocol_version in VERSIONS and declared is not None and TASKS in declared


def check_header(ctx: Request, task_id: str) -> None:
    """Raise MCPError if a request over HTTP does not name the task in its header Mcp-Name."""
    headers = getattr(ctx.request, "headers", None)
    if headers is None or headers.get(NAME_HEADER) == task_id:
        return
    raise MCPError(code=HEADER_MISMATCH, message="the header Mcp-Name must be the taskId of the request")
