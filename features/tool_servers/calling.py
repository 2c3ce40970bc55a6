"""One call of a tool of a server: sent, followed while it runs, and its end told as a value or an error.

A call that is cancelled or takes too long is cancelled at the server as well (`notifications/cancelled`). Whether a
call whose answer got lost may be sent again is the step's `repeatable`: if not, its outcome is unknown, as it is for a
worker that dies in a call (`activities.attempt.run_once`).
"""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Any

from plansurvive.activities.tools.tool import ToolContext
from plansurvive.activities.values.errors import bounded, one_line
from plansurvive.features.tool_servers.flow import GONE, NOT_SENT, TOO_MUCH
from plansurvive.features.tool_servers.program import unavailable
from plansurvive.features.tool_servers.results import failed, too_large, value_of
from plansurvive.features.tool_servers.server_connection import Connection
from plansurvive.features.tool_servers.tool_server import ToolServer
from plansurvive.plans.errors import MAY_HAVE_HAPPENED, OUTCOME_UNKNOWN, ToolError

if TYPE_CHECKING:
    from mcp import MCPError
    from mcp_types import CallToolResult

ROOTS_ROUNDS = 3
"""How often a server may ask for the workspace in one call."""
_NO_SESSION = "Session terminated"
"""What the library says for a server that has forgotten the session: the call was not carried out."""


async def called(
    connection: Connection, name: str, server: ToolServer, tool: str, args: dict[str, Any], context: ToolContext
) -> Any:
    """The value of a call over an open connection. Raises ToolError, see docs/tool-servers.md."""
    from mcp import MCPError
    from pydantic import ValidationError

    try:
        async with asyncio.timeout(server.timeout) as limit:
            result = await _answer(connection, name, tool, args, context)
    except TimeoutError:
        if not limit.expired():
            raise
        raise _too_slow(name, server, tool, context) from None
    except MCPError as error:
        raise _refused(connection, name, tool, error, context) from None
    except ValidationError:
        raise ToolError(
            "MCP_PROTOCOL", f"the answer of {name}.{tool} is not a result of the protocol; report it to its makers"
        ) from None
    return value_of(name, tool, result, server.max_result)


async def _answer(
    connection: Connection, name: str, tool: str, args: dict[str, Any], context: ToolContext
) -> CallToolResult:
    """Send the call. Not by `ClientSession.call_tool`, which runs the patterns of the server's schemas here."""
    from mcp_types import CallToolRequest, CallToolRequestParams, CallToolResult, InputRequiredResult
    from pydantic import TypeAdapter

    async def follow(progress: float, total: float | None, message: str | None) -> None:
        context.progress(*_progress(progress, total, message))

    answers: dict[str, Any] = {}
    state = None
    adapter: TypeAdapter[CallToolResult | InputRequiredResult] = TypeAdapter(CallToolResult | InputRequiredResult)
    client = await connection.client()
    for _ in range(ROOTS_ROUNDS + 1):
        params = CallToolRequestParams(name=tool, arguments=args, **answers, request_state=state)
        request = CallToolRequest(params=params)
        result = await client.session.send_request(request, adapter, progress_callback=follow)
        if isinstance(result, CallToolResult):
            return result
        answers, state = {"input_responses": _inputs(connection, name, tool, result)}, result.request_state
    raise _asks(name, tool, "the same thing again and again")


def _inputs(connection: Connection, name: str, tool: str, result: Any) -> dict[str, Any]:
    """The answers to what a server asks for before it goes on: the workspace, if it was granted, and nothing else."""
    found: dict[str, Any] = {}
    for key, asked in (result.input_requests or {}).items():
        if asked.method != "roots/list":
            kinds = {"elicitation/create": "an answer by a person", "sampling/createMessage": "an answer by a model"}
            raise _asks(name, tool, kinds.get(asked.method, "something of ours"))
        found[key] = connection.roots()
    return found


def _progress(done: float, total: float | None, message: str | None) -> tuple[str, float | None]:
    """A line and a percentage."""
    counted = f"{done:g} of {total:g}" if total is not None else f"{done:g}"
    usable = total is not None and math.isfinite(done) and math.isfinite(total) and total > 0
    return one_line(message[:2_000]) if message else counted, 100 * done / total if usable and total else None


def _too_slow(name: str, server: ToolServer, tool: str, context: ToolContext) -> ToolError:
    where = f"; its last progress was: {context.line}" if context.line else ""
    text = f"{name}.{tool} took longer than {server.timeout:g} seconds (timeout in mcp.toml){where}"
    return ToolError("MCP_TIMEOUT", f"{text}; {_unknown(context)}", retryable=context.call.repeatable)


def _refused(connection: Connection, name: str, tool: str, error: MCPError, context: ToolContext) -> ToolError:
    from mcp_types import CONNECTION_CLOSED

    if connection.problem is not None:
        return connection.problem
    said = bounded(one_line(error.message), 2_000)
    if error.code == NOT_SENT or said == _NO_SESSION:
        return unavailable(name, said, retryable=True)
    if error.code == TOO_MUCH:
        return too_large(name, tool, said)
    if error.code not in (CONNECTION_CLOSED, GONE):
        return failed(name, tool, f"{said} (code {error.code})")
    words = connection.last_words() if error.code == CONNECTION_CLOSED else said
    last = f"; the last of it was: {words}" if words else ""
    if context.call.repeatable:
        return ToolError("MCP_LOST", f"the tool server '{name}' ended or went away during {tool}{last}", retryable=True)
    text = f"the tool server '{name}' ended or went away during {tool}; {_unknown(context)}{last}"
    return ToolError(OUTCOME_UNKNOWN, text)


def _unknown(context: ToolContext) -> str:
    if context.call.repeatable:
        return "the call may be sent again"
    return MAY_HAVE_HAPPENED


def _asks(name: str, tool: str, what: str) -> ToolError:
    text = f"{name}.{tool} asks for {what}, which calls of plans cannot give; pass all it needs as arguments"
    return ToolError("MCP_NEEDS_INPUT", text)
