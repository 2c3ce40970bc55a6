"""Makes the MCP server of a host: each area registers its tools, resources and prompts.

A new area is a function `register(server, host)` in AREAS; an extension of the protocol is a function in EXTENSIONS,
as the library fixes extensions when the server is made. Errors of tools become results (`client.mcp.errors`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from typing import Any

from mcp.server.extension import Extension
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, InputRequiredResult, Tool

from client.mcp import errors
from client.mcp.host import Host
from client.mcp.tools import showing, starting
from plans.errors import PlanError

Register = Callable[[MCPServer[Any], Host], None]

AREAS: tuple[Register, ...] = (starting.register, showing.register)
EXTENSIONS: tuple[Callable[[Host], Extension], ...] = ()

NAME = "plans"
INSTRUCTIONS = """Durable plans of tool steps on Temporal. A plan keeps running when you, this server or the machine \
stops. Check a plan with plan_check, start it with plan_start, follow it with plan_show. Steps that change or send \
something may await a person's approval: you cannot approve; tell the person where to decide, and continue."""


class PlanServer(MCPServer[Any]):
    """An MCP server whose tools fail with the codes and sentences of the command line.

    An argument that a tool does not have is refused, not ignored: an agent that asks for a waiver learns that there is
    none.
    """

    async def list_tools(self) -> list[Tool]:
        """The tools, with schemas that say that there are no other arguments."""
        return [
            tool.model_copy(update={"input_schema": {**tool.input_schema, "additionalProperties": False}})
            for tool in await super().list_tools()
        ]

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool; an error becomes a result with `isError`."""
        try:
            _refuse_unknown(await self.list_tools(), name, arguments)
            return await super().call_tool(name, arguments, context)
        except PlanError as error:
            return errors.told(error)
        except ToolError as error:
            return errors.result_of(error)


def _refuse_unknown(tools: Sequence[Tool], name: str, arguments: Mapping[str, Any]) -> None:
    """Raise PlanError for arguments that the tool does not have."""
    for tool in tools:
        if tool.name == name and (unknown := sorted(arguments.keys() - tool.input_schema.get("properties", {}).keys())):
            has = ", ".join(tool.input_schema.get("properties", {}))
            text = f"{name} has no argument {', '.join(map(repr, unknown))[:500]}; it has {has or 'none'}"
            raise PlanError(text, "BAD_ARGUMENTS")


def build(host: Host) -> MCPServer[Any]:
    """The server of a host, for any transport."""
    server = PlanServer(
        NAME,
        title="Plans that survive",
        instructions=INSTRUCTIONS,
        version=_version(),
        extensions=[each(host) for each in EXTENSIONS],
        log_level="WARNING",
    )
    for register in AREAS:
        register(server, host)
    return server


def _version() -> str:
    try:
        return metadata.version("plans-that-survive")
    except metadata.PackageNotFoundError:
        return "0"
